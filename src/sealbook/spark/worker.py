"""The Python worker process that a task runs in."""

from __future__ import annotations

import gc

_is_settled = False


def settle() -> None:
    """Keep what is loaded by now out of garbage collections. Cheap; call it at the start of a task.

    PySpark collects in full after each task, and would spend more on our modules than many a task takes.
    """
    global _is_settled
    if not _is_settled:
        gc.freeze()
        _is_settled = True
