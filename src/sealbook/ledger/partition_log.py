"""The log by partition: every fact about each, whichever runs they belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.facts import PartitionRun, is_kind, last_failures, told_sealed
from sealbook.ledger.events.port import FeedEvent
from sealbook.ledger.events.retention import beginnings
from sealbook.ledger.events.rows import SELECT_EVENTS, event_from_row
from sealbook.ledger.events.tables import retired_run, run_event
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import among, conditions
from sealbook.ledger.states.tables import attempt
from sealbook.model import EventType, Outcome, PartitionKey, RunEvent
from sealbook.model.failures import AttemptCounts, LastFailure
from sealbook.model.partition_events import FACT_TYPES, PartitionFailed, Stage, read_fact
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName

_FEW = 50
"""Of so many customers, each is sought by itself."""

_IN_ORDER: Select[Any] = SELECT_EVENTS.where(
    run_event.c.partition.is_not(None), run_event.c.event_type.in_(FACT_TYPES)
).order_by(run_event.c.partition, run_event.c.position)


class PartitionLog:
    """The port of whoever builds something of each partition's facts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def feed(self, selection: Selection = EVERYTHING) -> Iterator[FeedEvent]:
        """Stream the events of some partitions, partition by partition, each in the order of commits."""
        asked = [] if selection.is_everything else self._asked(selection)
        for each in stream(self._database, _IN_ORDER.where(*asked), _event):
            if not asked or selection.matches(PartitionKey.parse(each.event.partition or "")):
                yield each

    def events(self, key: PartitionKey) -> list[RunEvent]:
        """Return the events of one partition, in the order of commits."""
        return [each.event for each in self.feed_of(key)]

    def feed_of(self, key: PartitionKey) -> list[FeedEvent]:
        """Return the events of one partition, in the order of commits, each with its position."""
        query = _IN_ORDER.where(run_event.c.partition == str(key))
        with self._database.read() as connection:
            return [_event(*row) for row in connection.execute(query)]

    def last_failures(self, selection: Selection) -> Iterator[tuple[PartitionKey, LastFailure]]:
        """Stream the partitions that are chosen whose last attempt failed, in key order, and how it did."""
        asked = self._asked(selection, is_kind(run_event, EventType.PARTITION_FAILED))
        for each in stream(self._database, last_failures(*asked), _event):
            event = each.event
            fact = read_fact(event)
            if isinstance(fact, PartitionFailed) and event.persisted_at and selection.matches(fact.key):
                yield fact.key, fact.seen(event.persisted_at)

    def attempts(self) -> dict[AssetName, AttemptCounts]:
        """Count by query how attempts have gone, as far as the log goes back."""
        found: dict[AssetName, AttemptCounts] = defaultdict(AttemptCounts)
        failed = is_kind(run_event, EventType.PARTITION_FAILED)
        for each in stream(self._database, SELECT_EVENTS.where(failed), _event):
            fact = read_fact(each.event)
            if isinstance(fact, PartitionFailed) and fact.failed_stage is Stage.EXTRACT:
                found[AssetName(fact.key.source, fact.key.query_name)].failed[fact.error_class] += 1
        judged = (
            select(attempt.c.source, attempt.c.query_name, attempt.c.outcome, func.count())
            .where(attempt.c.revalidation_id.is_(None))
            .group_by(attempt.c.source, attempt.c.query_name, attempt.c.outcome)
        )
        with self._database.read() as connection:
            for source, query_name, outcome, count in connection.execute(judged):
                if outcome == Outcome.ACCEPTED:
                    found[AssetName(source, query_name)].accepted = count
                else:
                    found[AssetName(source, query_name)].rejected = count
        return dict(found)

    def _asked(self, selection: Selection, *of_events: ColumnElement[bool]) -> list[ColumnElement[bool]]:
        """Return where in the order of partitions those are that are chosen, as near as is worth while."""
        partition = run_event.c.partition
        if selection.keys:
            return [among(self._database.dialect, partition, [str(key) for key in selection.keys])]
        sources = self._sources(*of_events) if selection.source is None else selection.source
        customers = selection.customers
        if customers is None or len(customers) > _FEW:
            prefixes = list(sources)
        else:
            prefixes = [f"{source}/{customer}" for source in sources for customer in customers]
        # What comes after a slash comes before a zero, which is the next character.
        within = or_(false(), *(and_(partition > f"{each}/", partition < f"{each}0") for each in prefixes))
        return [within, *_looking_like(partition, selection)]

    def _sources(self, *of_events: ColumnElement[bool]) -> list[str]:
        """Return the sources of such events, each found by one look into the index."""
        found: list[str] = []
        first = select(func.min(run_event.c.partition)).where(*of_events)
        with self._database.read() as connection:
            bound = ""
            while text := connection.execute(first.where(run_event.c.partition > bound)).scalar():
                found.append(text.partition("/")[0])
                bound = f"{found[-1]}0"
        return found

    def untold_seals(self, runs: Iterable[PartitionRun]) -> list[PartitionRun]:
        """Return those of some sealed runs of partitions that no PartitionSealed tells of, in their order.

        What a retired run had to tell, it told: its events are gone from the log.
        """
        found = list(runs)
        with self._database.read() as connection:
            told = told_sealed(connection, found)
            begins = beginnings(connection, {str.__str__(run_id) for _, run_id in found})
        return [
            each for each in found if each not in told and not begins[str.__str__(each[1])].last_event_seq
        ]

    def judged_in(self, runs: Iterable[str], selection: Selection = EVERYTHING) -> set[PartitionKey]:
        """Return the partitions, of those chosen, that were judged in any of these runs."""
        given = given_rows(self._database.dialect, [retired_run.c.run_id])
        query = select(*(attempt.c[name] for name in KEY)).join(given, given.c.run_id == attempt.c.run_id)
        query = query.where(*conditions(self._database.dialect, attempt, selection))
        rows = encode_rows({"run_id": run_id} for run_id in runs)
        with self._database.read() as connection:
            return {PartitionKey(*row) for row in connection.execute(query.distinct(), rows)}


def _looking_like(partition: ColumnElement[str], selection: Selection) -> Iterator[ColumnElement[bool]]:
    """Yield what the texts of keys have in common that are chosen: others need not be read."""
    if selection.queries is not None:
        yield or_(false(), *(partition.like(f"%/{each}/%") for each in selection.queries))
    day = func.substr(partition, func.length(partition) - 9)
    if selection.since is not None:
        yield day >= selection.since.isoformat()
    if selection.until is not None:
        yield day <= selection.until.isoformat()


def _event(*row: Any) -> FeedEvent:
    return FeedEvent(row[0], event_from_row(row))
