"""What the log says of a run or a step that lineage tells: how it began or ended, and what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID, uuid5

from ulid import ULID

from sealbook.ledger.events.port import PAGE
from sealbook.model.events import EventType, RunEvent
from sealbook.model.partition_events import (
    PartitionFact,
    PartitionFailed,
    PartitionJudged,
    PartitionPublished,
    PartitionSealed,
    Stage,
    read_fact,
)

FetchEvents = Callable[[str, int, int], list[RunEvent]]

STAGES = (Stage.EXTRACT, Stage.VALIDATE, Stage.LOAD)
"""The steps that lineage tells."""

_OTHERS = UUID("6f2ac1f3-0b5b-4b44-8a8e-7d3a5a6a9d10")
"""The namespace of runs whose ids are no ULIDs: another engine's."""


class Moment(StrEnum):
    """What happened to a run or a step, in the words of OpenLineage."""

    START = "START"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    ABORT = "ABORT"


_RUN_MOMENTS = {
    EventType.RUN_STARTED: Moment.START,
    EventType.RUN_COMPLETED: Moment.COMPLETE,
    EventType.RUN_FAILED: Moment.FAIL,
    EventType.RUN_CANCELLED: Moment.ABORT,
}
_STEP_MOMENTS = {
    EventType.STEP_STARTED: Moment.START,
    EventType.STEP_COMPLETED: Moment.COMPLETE,
    EventType.STEP_FAILED: Moment.FAIL,
}


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the log that lineage tells, of a run or, if there is a stage, of a step of it."""

    moment: Moment
    event: RunEvent
    stage: Stage | None = None

    @classmethod
    def of(cls, event: RunEvent) -> Told | None:
        """Return what lineage tells of an event; None if nothing."""
        kind = event.event_type
        if event.step_id is None:
            return cls(_RUN_MOMENTS[EventType(kind)], event) if kind in _RUN_MOMENTS else None
        if kind in _STEP_MOMENTS and event.step_id in STAGES:
            return cls(_STEP_MOMENTS[EventType(kind)], event, Stage(event.step_id))
        return None

    @property
    def run_uuid(self) -> str:
        """The id of the whole run: its ULID as a UUID of the version that is like it."""
        return str(uuid_of(self.event.run_id))

    @property
    def uuid(self) -> str:
        """The id of what is told: the same however often it is told."""
        if self.stage is None:
            return self.run_uuid
        return str(uuid5(uuid_of(self.event.run_id), f"{self.stage}/{self.event.logical_attempt_id or 1}"))

    @property
    def error(self) -> str | None:
        """What the event says that went wrong."""
        data = self.event.event_data
        found = data.get("error") if isinstance(data, Mapping) else None
        return None if found is None else str(found)

    def facts(self, fetch: FetchEvents) -> list[PartitionFact]:
        """Return what the step that ended did to partitions: what the run's log has between its two ends."""
        event = self.event
        facts: list[PartitionFact] = []
        for each in _log(fetch, event):
            if (each.event_type, each.step_id, each.logical_attempt_id) == (
                EventType.STEP_STARTED,
                event.step_id,
                event.logical_attempt_id,
            ):
                facts = []
            fact = read_fact(each)
            if fact is not None and fact.stage is self.stage:
                facts.append(fact)
        return facts


def uuid_of(run_id: str) -> UUID:
    """Return the UUID of a run: version 7, which begins with the time as a ULID does."""
    try:
        value = int.from_bytes(ULID.from_str(run_id).bytes)
    except ValueError:
        return uuid5(_OTHERS, run_id)
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return UUID(int=value)


def _log(fetch: FetchEvents, end: RunEvent) -> Iterator[RunEvent]:
    """Yield what a run's log has before an event."""
    last, seq = end.run_seq or 0, 0
    while page := fetch(end.run_id, seq, PAGE):
        for each in page:
            if (each.run_seq or 0) >= last:
                return
            yield each
        seq = page[-1].run_seq or 0


@dataclass
class Work:
    """What a step did of one query: how much, by the latest version of it."""

    partitions: int = 0
    rows: int = 0
    bytes: int = 0
    files: int = 0
    schema_version: str | None = None


def work_by_query(facts: Iterable[PartitionFact]) -> dict[tuple[str, str], Work]:
    """Sum up facts, but for failures, by source and query."""
    found: dict[tuple[str, str], Work] = {}
    for fact in facts:
        if not isinstance(fact, PartitionSealed | PartitionJudged | PartitionPublished):
            continue
        work = found.setdefault((fact.key.source, fact.key.query_name), Work())
        work.partitions += 1
        work.rows += fact.record_count or 0
        work.schema_version = fact.schema_version or work.schema_version
        if isinstance(fact, PartitionSealed):
            work.bytes += fact.payload_bytes
            work.files += 1
        elif isinstance(fact, PartitionPublished):
            work.bytes += fact.bytes
            work.files += fact.parts or 1
    return found


def failures(facts: Iterable[PartitionFact]) -> str | None:
    """Say which partitions failed, by their number and the first of them; None if none did."""
    failed = [fact for fact in facts if isinstance(fact, PartitionFailed)]
    if not failed:
        return None
    return f"{len(failed)} failed, the first {failed[0].key}: {failed[0].error}"
