"""Garbage collection in a process that makes objects by the hundred thousand: driver or Python worker."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_modules_are_frozen = False


@contextmanager
def existing_objects_frozen() -> Iterator[None]:
    """Have the collector look at no object that was there before the block, while it lasts.

    It looks through all objects again whenever there are a quarter more of them. A job makes as many, over
    and over; what it would look through is the plan and every module, of which nothing can go meanwhile.
    """
    if gc.get_freeze_count():  # by the caller, who knows better
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def freeze_loaded_modules() -> None:
    """Keep what a worker has loaded by now out of collections. Cheap; call it at the start of a task.

    PySpark collects in full after each task, and would spend more on our modules than many a task takes.
    """
    global _modules_are_frozen
    if not _modules_are_frozen:
        gc.freeze()
        _modules_are_frozen = True
