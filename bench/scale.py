"""How much is measured: `small` ends within the hour on a laptop, `full` is what the bounds were set for."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "BENCH_SCALE"
"""How a comparison, which is a process of its own, is told."""


class Scale(StrEnum):
    """The sizes and rounds of all comparisons."""

    SMALL = "small"
    FULL = "full"


def sized(*, small: T, full: T) -> T:
    """Return the size, or the number of rounds, of the scale that is asked for."""
    return full if Scale(os.environ.get(VARIABLE, Scale.FULL)) is Scale.FULL else small
