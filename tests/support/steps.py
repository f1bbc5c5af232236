"""What is done at a step of a piece of work: a call or a return of functions of some packages."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType, TracebackType
from typing import Self


class Steps:
    """Counts the steps within a block, and does something at one of them; 0 is none."""

    def __init__(self, packages: tuple[str, ...], step: int, then: Callable[[], object]) -> None:
        self._packages = packages
        self._step = step
        self._then = then
        self._numbers = count(1)

    @property
    def taken(self) -> int:
        """How many there were, once the block is done."""
        return next(self._numbers) - 1

    def __enter__(self) -> Self:
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _watch(self, frame: FrameType, event: str, _argument: object) -> None:
        # What it does is not watched itself: Python calls no such function within one.
        is_step = event in ("call", "return") and frame.f_globals.get("__name__", "").startswith(
            self._packages
        )
        if is_step and next(self._numbers) == self._step:
            self._then()
