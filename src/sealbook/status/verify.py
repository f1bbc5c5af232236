"""The ledger held against its own log: states and pointers are built again from the facts, and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sealbook.errors import IllegalMove, InvalidInput
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events import FeedEvent, RetiredRun
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model import PartitionKey, PartitionState, RunEvent, RunId
from sealbook.model.partition_events import FACT_TYPES, read_fact
from sealbook.model.partition_fold import FoldedPartition, fold_fact
from sealbook.model.publication import Pointer, PointerStatus
from sealbook.model.selection import Selection
from sealbook.status.archive import RunArchive, Span
from sealbook.status.spilling import few_streams, partition_of

_STATE = tuple(name for name in PartitionState._fields if name not in KEY)
_POINTER = ("run_id", "schema_version")
_LOOKS = 10
"""How often a partition is looked at that is written to all the time."""


class LogDifference(NamedTuple):
    """A field of a partition in which the tables do not say what the log does."""

    key: PartitionKey
    field: str
    from_log: str
    in_table: str


@dataclass
class Verified:
    """What was compared so far."""

    partitions: int = 0
    retired: int = 0
    """Partitions that were passed over, as runs of theirs were retired, and are not in the archive."""


@dataclass(frozen=True, slots=True)
class _Tables:
    state: PartitionState
    pointer: Pointer | None = None
    hold: RunId | None = None


def verify_ledger(
    ledger: LedgerReader,
    progress: Verified | None = None,
    archive: RunArchive | None = None,
    selection: Selection = EVERYTHING,
) -> Iterator[LogDifference]:
    """Yield every difference between the tables and the log; the ledger may be written to meanwhile.

    The log is what the ledger has, and what the archive has of the runs that were retired.
    """
    seen = Verified() if progress is None else progress
    archived = {each: _archived_facts(archive, each) for each in _retirements(ledger, selection)}
    lost = [each.run_id for each, facts in archived.items() if facts is None]
    unknown = ledger.partition_log.judged_in(lost, selection)
    with few_streams([facts for facts in archived.values() if facts is not None]) as streams:
        for key, events, tables in _merged(ledger, streams, selection):
            if key in unknown:
                seen.retired += 1
                continue
            seen.partitions += 1
            if any(_compared(key, events, tables)):
                yield from _looked_again(ledger, archive, key)


def _retirements(ledger: LedgerReader, selection: Selection) -> list[RetiredRun]:
    """Return those of the runs that matter: what counts of a partition is of runs that judged it."""
    retirements = ledger.run_store.retirements()
    if not retirements or selection.is_everything:
        return retirements
    judged = {str.__str__(run_id) for _, run_id in ledger.judged_runs(selection)}
    return [each for each in retirements if each.run_id in judged]


def _archived_facts(archive: RunArchive | None, retired: RetiredRun) -> Iterator[FeedEvent] | None:
    """Return the facts about partitions that a retirement took out of the log; None if they are lost."""
    segment = None if archive is None else archive.find(Span.of(retired))
    if archive is None or segment is None:
        return None
    events = archive.read(segment)
    return (each for each in events if each.event.partition and each.event.event_type in FACT_TYPES)


def _merged(
    ledger: LedgerReader, archived: Iterable[Iterator[FeedEvent]], selection: Selection
) -> Iterator[tuple[PartitionKey, list[RunEvent], _Tables]]:
    """Yield each partition that log or tables know, in key order, with what both say of it."""
    streams: list[Iterator[tuple[PartitionKey, FeedEvent | PartitionState | Pointer | RunId]]] = [
        _by_key(ledger.partition_log.feed(selection)),
        *(((key, each) for key, each in _by_key(facts) if selection.matches(key)) for facts in archived),
        ((state.key, state) for state in ledger.states(selection)),
        ((pointer.key, pointer) for pointer in ledger.pointers.open_pointers(selection)),
        ledger.holds(selection),
    ]
    for key, found in groupby(merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
        events: list[FeedEvent] = []
        tables = _Tables(PartitionState.pending(key))
        for _, each in found:
            if isinstance(each, FeedEvent):
                events.append(each)
            elif isinstance(each, PartitionState):
                tables = replace(tables, state=each)
            elif isinstance(each, Pointer):
                tables = replace(tables, pointer=each)
            else:
                tables = replace(tables, hold=each)
        yield key, _in_order(events), tables


def _by_key(
    log: Iterator[FeedEvent],
) -> Iterator[tuple[PartitionKey, FeedEvent | PartitionState | Pointer | RunId]]:
    return ((partition_of(each), each) for each in log)


def _in_order(events: Iterable[FeedEvent]) -> list[RunEvent]:
    """Return events in the order of commits, each once: a run may have been retired while it was read."""
    by_position = {each.position: each.event for each in events}
    return [by_position[position] for position in sorted(by_position)]


def _looked_again(
    ledger: LedgerReader, archive: RunArchive | None, key: PartitionKey
) -> Iterator[LogDifference]:
    """Compare one partition by itself, at a moment at which its log did not move."""
    for _ in range(_LOOKS):
        events = _events_of(ledger, archive, key)
        latest = ledger.pointers.pointer(key)
        pointer = latest if latest is not None and latest.status is PointerStatus.AVAILABLE else None
        hold = dict(ledger.holds(Selection(keys=[key]))).get(key)
        tables = _Tables(ledger.state(key), pointer, hold)
        if len(_events_of(ledger, archive, key)) == len(events):
            yield from _compared(key, events, tables)
            return


def _events_of(ledger: LedgerReader, archive: RunArchive | None, key: PartitionKey) -> list[RunEvent]:
    """Return all that the log and the archive say of a partition; what counts is of runs that judged it."""
    events = ledger.partition_log.feed_of(key)
    for run_id in {attempt.run_id for attempt in ledger.attempts(key)}:
        for retired in ledger.run_store.retirements(run_id):
            facts = _archived_facts(archive, retired) or ()
            events += [each for each in facts if each.event.partition == str(key)]
    return _in_order(events)


def _compared(key: PartitionKey, events: list[RunEvent], tables: _Tables) -> Iterator[LogDifference]:
    folded = FoldedPartition.unknown(key)
    try:
        for event in events:
            fact = read_fact(event)
            if fact is not None and event.persisted_at is not None:
                folded = fold_fact(folded, fact, event.persisted_at)
    except (IllegalMove, InvalidInput) as error:
        yield LogDifference(key, "log", f"event {event.event_id}: {error}", "")
        return
    for field in _STATE:
        yield from _difference(key, field, getattr(folded.state, field), getattr(tables.state, field))
    for field in _POINTER:
        said = None if folded.published is None else getattr(folded.published, field)
        found = None if tables.pointer is None else getattr(tables.pointer, field)
        yield from _difference(key, f"pointer {field}", said, found)
    yield from _difference(key, "hold", folded.hold, tables.hold)


def _difference(key: PartitionKey, field: str, said: object, found: object) -> Iterator[LogDifference]:
    if said != found:
        yield LogDifference(key, field, str(said), str(found))
