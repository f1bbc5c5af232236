"""`python -m sealbook` is the command `sealbook`."""

import sys

from sealbook.cli import main

sys.exit(main())
