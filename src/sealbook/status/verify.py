"""The ledger held against its own log: states and pointers are built again from the facts, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sealbook.errors import IllegalMove, InvalidInput
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, PartitionState, RunEvent, RunId
from sealbook.model.partition_events import read_fact
from sealbook.model.partition_fold import FoldedPartition, fold_fact
from sealbook.model.publication import Pointer, PointerStatus
from sealbook.model.selection import Selection

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
    """Partitions that were passed over, as runs of theirs were retired from the log."""


@dataclass(frozen=True, slots=True)
class _Tables:
    state: PartitionState
    pointer: Pointer | None = None
    hold: RunId | None = None


def verify_ledger(ledger: LedgerReader, progress: Verified | None = None) -> Iterator[LogDifference]:
    """Yield every difference between the tables and the log; the ledger may be written to meanwhile."""
    seen = Verified() if progress is None else progress
    retired = ledger.partition_log.retired()
    for key, events, tables in _merged(ledger):
        if key in retired:
            seen.retired += 1
            continue
        seen.partitions += 1
        if any(_compared(key, events, tables)):
            yield from _looked_again(ledger, key)


def _merged(ledger: LedgerReader) -> Iterator[tuple[PartitionKey, list[RunEvent], _Tables]]:
    """Yield each partition that log or tables know, in key order, with what both say of it."""
    streams: list[Iterator[tuple[PartitionKey, RunEvent | PartitionState | Pointer | RunId]]] = [
        ((PartitionKey.parse(event.partition or ""), event) for event in ledger.partition_log.all_events()),
        ((state.key, state) for state in ledger.states(Selection())),
        ((pointer.key, pointer) for pointer in ledger.pointers.open_pointers()),
        ledger.holds(),
    ]
    for key, found in groupby(merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
        events: list[RunEvent] = []
        tables = _Tables(PartitionState.pending(key))
        for _, each in found:
            if isinstance(each, RunEvent):
                events.append(each)
            elif isinstance(each, PartitionState):
                tables = replace(tables, state=each)
            elif isinstance(each, Pointer):
                tables = replace(tables, pointer=each)
            else:
                tables = replace(tables, hold=each)
        yield key, events, tables


def _looked_again(ledger: LedgerReader, key: PartitionKey) -> Iterator[LogDifference]:
    """Compare one partition by itself, at a moment at which its log did not move."""
    for _ in range(_LOOKS):
        events = ledger.partition_log.events(key)
        latest = ledger.pointers.pointer(key)
        pointer = latest if latest is not None and latest.status is PointerStatus.AVAILABLE else None
        hold = dict(ledger.holds(Selection(keys=[key]))).get(key)
        tables = _Tables(ledger.state(key), pointer, hold)
        if len(ledger.partition_log.events(key)) == len(events):
            yield from _compared(key, events, tables)
            return


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
