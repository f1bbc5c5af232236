"""`python -m bench [NAME ...]`: run the named comparisons, or all."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.harness import report

NAMES = sorted(path.stem.removeprefix("compare_") for path in Path(__file__).parent.glob("compare_*.py"))


def main() -> int:
    """Run comparisons; the exit code says whether every bound held."""
    wanted = sys.argv[1:] or NAMES
    unknown = set(wanted) - set(NAMES)
    if unknown:
        sys.exit(f"no such comparison: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    held = [report(name, importlib.import_module(f"bench.compare_{name}").run()) for name in wanted]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
