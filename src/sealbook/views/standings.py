"""What cells of the grid mean, in words: the same in the terminal, in JSON and on the page."""

from __future__ import annotations

from sealbook.model.display import Cell
from sealbook.model.standing import Standing
from sealbook.model.status import AttemptOutcome, Availability

MEANINGS = {
    Cell.WITHDRAWN: "withdrawn",
    Cell.FAILED: "failed",
    Cell.LAST_ATTEMPT_FAILED: "last attempt failed, earlier run readable",
    Cell.STALE: "stale",
    Cell.MISSING: "missing",
    Cell.PENDING: "pending",
    Cell.RUNNING: "running",
    Cell.PROVISIONAL: "provisional",
    Cell.MATERIALIZED: "readable",
}
_GETS = {
    Availability.PUBLISHED: "consumers get the newest run",
    Availability.BEHIND: "consumers get an older run",
    Availability.HIDDEN: "consumers get nothing any more",
    Availability.NONE: "consumers get nothing",
}
_WENT = {
    AttemptOutcome.SUCCEEDED: "the last attempt succeeded",
    AttemptOutcome.FAILED: "the last attempt failed",
    AttemptOutcome.CANCELLED: "the last attempt was cancelled",
    None: "nothing was attempted",
}


def words_of(standing: Standing) -> str:
    """Say what a cell shows, and both facts: what consumers get, and how the last attempt went."""
    meaning = MEANINGS[standing.cell].partition(",")[0]
    return f"{meaning}: {_GETS[standing.availability]}, {_WENT[standing.attempt]}"


def told(standing: Standing) -> dict[str, object]:
    """Return one object."""
    return {
        "cell": standing.cell,
        "letter": standing.cell.letter,
        "availability": standing.availability,
        "last_attempt": standing.attempt,
        "words": words_of(standing),
    }
