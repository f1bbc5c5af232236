"""How a partition stands in one character: what consumers get of it, and how the last attempt at it went."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from sealbook.model.display import Cell
from sealbook.model.status import AttemptOutcome, Availability

BLANK = " "
"""The character of a day on which nothing is expected: it comes before all others."""

AVAILABILITIES = (Availability.NONE, Availability.HIDDEN, Availability.BEHIND, Availability.PUBLISHED)
"""What consumers get, the worst first."""

ATTEMPTS = (AttemptOutcome.FAILED, AttemptOutcome.CANCELLED, None, AttemptOutcome.SUCCEEDED)
"""How an attempt went, the worst first; None if there was none."""

_READABLE = tuple(each for each in AVAILABILITIES if each.readable)
_UNREADABLE = tuple(each for each in AVAILABILITIES if not each.readable)
_NOT_FAILED = tuple(each for each in ATTEMPTS if each is not AttemptOutcome.FAILED)


class Standing(NamedTuple):
    """What a cell shows, with both facts beside it."""

    cell: Cell
    availability: Availability = Availability.NONE
    attempt: AttemptOutcome | None = None

    @property
    def code(self) -> str:
        """The character that stands for it: of two, that of the worse is the greater."""
        return _CODES[self]


def _possible(cell: Cell) -> list[tuple[Availability, AttemptOutcome | None]]:
    """Return what can be true beside a cell, the worst first; what a cell says itself is not told twice."""
    match cell:
        case Cell.WITHDRAWN:
            return list(product(_UNREADABLE, ATTEMPTS))
        case Cell.FAILED:
            return list(product(AVAILABILITIES, [AttemptOutcome.FAILED]))
        case Cell.LAST_ATTEMPT_FAILED:
            return list(product(_READABLE, [AttemptOutcome.FAILED]))
        case Cell.MISSING:
            return [(Availability.NONE, None)]
        case Cell.PENDING:
            return list(product(AVAILABILITIES, _NOT_FAILED))
        case Cell.RUNNING:
            return list(product(AVAILABILITIES, ATTEMPTS))
        case Cell.PROVISIONAL:
            return [(Availability.NONE, None), *product(_READABLE, ATTEMPTS)]
        case Cell.STALE | Cell.MATERIALIZED:
            return list(product(_READABLE, ATTEMPTS))


STANDINGS = tuple(Standing(cell, *beside) for cell in Cell for beside in _possible(cell))
"""Every standing that there can be, the worst first."""

# Characters that JSON and HTML hold as they are. They are given out once and for all: a page that has been
# open for a week reads what it is sent today.
_ALPHABET = [chr(number) for number in range(ord("."), ord("~") + 1) if chr(number) not in "<>\\`"]
_CODES = dict(zip(reversed(STANDINGS), _ALPHABET, strict=False))
BY_CODE = {code: standing for standing, code in _CODES.items()}
"""The standing of each character but the blank."""


def worst_code(codes: str) -> str:
    """Return the character of the worst of some days."""
    return max(codes, default=BLANK)
