"""Garbage collection in a driver that makes objects by the hundred thousand."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def older_left_alone() -> Iterator[None]:
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
