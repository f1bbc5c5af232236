"""A copy of a ledger whose process dies on the way."""

from __future__ import annotations

import os
import signal

from sealbook.ledger.copying import copy_ledger


def copy_and_die(source: str, target: str, table: str) -> None:
    """Copy a ledger, and be killed when rows of a table are over, before anything else is."""

    def die(name: str, _rows: int) -> None:
        if name == table:
            os.kill(os.getpid(), signal.SIGKILL)

    copy_ledger(source, target, die)
