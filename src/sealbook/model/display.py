"""How a partition is shown: one word for its status (R-PST-5), one cell of the grid."""

from __future__ import annotations

from enum import StrEnum

from sealbook.model.status import AttemptOutcome, Availability, LastAttempt, Materialization


class Display(StrEnum):
    """The display status of a partition."""

    NEVER_MATERIALIZED = "NeverMaterialized"
    WITHDRAWN = "Withdrawn"
    MATERIALIZED_BUT_LAST_ATTEMPT_FAILED = "MaterializedButLastAttemptFailed"
    STALE = "Stale"
    MATERIALIZED = "Materialized"


def display_status(
    materialization: Materialization | None,
    attempt: LastAttempt | None,
    availability: Availability,
    *,
    stale: bool,
) -> Display:
    """Return the display status; a cancelled attempt changes none."""
    if materialization is None:
        return Display.NEVER_MATERIALIZED
    if not availability.readable:
        return Display.WITHDRAWN
    if _failed(attempt, after=materialization):
        return Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED
    return Display.STALE if stale else Display.MATERIALIZED


class Cell(StrEnum):
    """What a cell of the grid shows, the worst first: a bin of several shows the first that it has."""

    WITHDRAWN = "withdrawn"
    FAILED = "failed"
    LAST_ATTEMPT_FAILED = "last_attempt_failed"
    STALE = "stale"
    MISSING = "missing"
    PENDING = "pending"
    RUNNING = "running"
    PROVISIONAL = "provisional"
    MATERIALIZED = "materialized"

    @property
    def letter(self) -> str:
        """The character that stands for it, also where there are no colours."""
        return _LETTERS[self]


_LETTERS = {
    Cell.WITHDRAWN: "W",
    Cell.FAILED: "x",
    Cell.LAST_ATTEMPT_FAILED: "F",
    Cell.STALE: "S",
    Cell.MISSING: "·",
    Cell.PENDING: "p",
    Cell.RUNNING: "…",
    Cell.PROVISIONAL: "~",
    Cell.MATERIALIZED: "■",
}


GOOD = frozenset({Cell.PROVISIONAL, Cell.MATERIALIZED})
"""What is as it should be."""


def cell_of(
    display: Display, attempt: LastAttempt | None, *, attempted: bool, running: bool, provisional: bool
) -> Cell:
    """Return the cell of a partition that is expected; `attempted` is false if nobody ever touched it.

    One that is `provisional` is not due yet, and so not missing (R-PST-6). While a run is at work on a
    partition that is not good, it shows as running.
    """
    match display:
        case Display.WITHDRAWN:
            return Cell.WITHDRAWN
        case Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED:
            return Cell.RUNNING if running else Cell.LAST_ATTEMPT_FAILED
        case Display.STALE:
            return Cell.RUNNING if running else Cell.STALE
        case Display.MATERIALIZED:
            return Cell.PROVISIONAL if provisional else Cell.MATERIALIZED
    if running:
        return Cell.RUNNING
    if _failed(attempt):
        return Cell.FAILED
    if attempted:
        return Cell.PENDING
    return Cell.PROVISIONAL if provisional else Cell.MISSING


def _failed(attempt: LastAttempt | None, after: Materialization | None = None) -> bool:
    if attempt is None or attempt.outcome is not AttemptOutcome.FAILED:
        return False
    return after is None or attempt.at > after.at
