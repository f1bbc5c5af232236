"""Why a partition is stale, and what that comes from, all the way up its upstreams (R-PST-3)."""

from __future__ import annotations

from datetime import datetime

from sealbook.ledger.status.reader import StatusReader
from sealbook.model.expectations import Expectations
from sealbook.model.explanation import Cause
from sealbook.model.keys import PartitionKey
from sealbook.model.staleness import StaleCode, StaleReason
from sealbook.model.status_line import StatusLine

FEW = 3
"""How many causes stand for all that a reason has."""

_OF_UPSTREAMS = (StaleCode.UPSTREAM_CHANGED, StaleCode.UPSTREAM_UNKNOWN)


class Causes:
    """The reasons of partitions and what they come from, as of one moment; each partition is told of once."""

    def __init__(self, reader: StatusReader, expectations: Expectations) -> None:
        self._reader = reader
        self._expectations = expectations
        self._lines: dict[PartitionKey, StatusLine] = {}
        self._reasons: dict[PartitionKey, list[StaleReason]] = {}
        self._told: set[PartitionKey] = set()

    def line(self, key: PartitionKey) -> StatusLine:
        """Return the status of a partition, asked for once."""
        if key not in self._lines:
            self._lines[key] = self._reader.line(key, self._expectations)
        return self._lines[key]

    def reasons(self, key: PartitionKey) -> list[StaleReason]:
        """Return every reason for which a partition is stale, the main one first."""
        if key not in self._reasons:
            self._reasons[key] = self._reader.reasons(key, self._expectations)
        return self._reasons[key]

    def of(self, reason: StaleReason) -> tuple[tuple[Cause, ...], int]:
        """Return the first few partitions that a reason comes from, and how many more there are.

        Each comes with its own causes, if it is stale in turn.
        """
        new = [key for key in reason.upstreams if key not in self._told]
        shown = new[:FEW]
        self._told.update(shown)
        return tuple(map(self._cause, shown)), len(new) - len(shown)

    def _cause(self, key: PartitionKey) -> Cause:
        line = self.line(key)
        causes: list[Cause] = []
        more = 0
        for reason in self.reasons(line.key):
            if reason.code in _OF_UPSTREAMS:
                found, left = self.of(reason)
                causes += found
                more += left
        return Cause(key, self._said(line), tuple(causes), more)

    def _said(self, line: StatusLine) -> str:
        if line.last_materialization_at is not None:
            stale = [each.code for each in self.reasons(line.key)]
            when, run_id = time_text(line.last_materialization_at), line.last_materialization_run_id
            published = f"published {when} by run {run_id}"
            return f"{published}; stale: {', '.join(stale)}" if stale else published
        if line.last_attempt_outcome is not None and line.last_attempt_at is not None:
            return (
                f"never published; its last attempt, run {line.last_attempt_run_id},"
                f" {line.last_attempt_outcome.lower()} {time_text(line.last_attempt_at)}"
            )
        if line.attempted:
            return "never published; it waits"
        due_at = self._expectations.universe.due_at(line.key)
        if due_at is not None and not line.due:
            return f"not due before {time_text(due_at)}"
        return "nobody has attempted it"


def time_text(moment: datetime) -> str:
    """Return a time for people, to the minute."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
