"""Rows that outlive the events they were made of: a projection that is built anew takes them over.

Retiring a run removes its events, and leaves the status of its partitions. What is built anew from the log
lacks those facts, so it takes each group of columns that came from a retired run, if its version is the
higher one, as ever (R-PST-2).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, FromClause, and_, func, insert, literal, select, update

from sealbook.ledger.events.tables import retired_run, run_head
from sealbook.ledger.status.tables import SERIES, partition_status, status_series

_ATTEMPT = ("attempt_run", "attempt_at", "attempt_outcome", "attempt_stage", "attempt_version")
_MATERIALIZATION = ("materialized_run", "materialized_at", "materialized_version", "validator_id")
_CHANGE = ("changed_at", "changed_version")
_NEVER = -1


def inherit(connection: Connection, before: int, after: int) -> None:
    """Take over from the rows of one projection what those of another lack, as the log has it no more."""
    _add_series(connection, before, after)
    _add_rows(connection, before, after)
    for columns in (_ATTEMPT, _MATERIALIZATION, _CHANGE):
        _take(connection, before, after, columns)


def _add_series(connection: Connection, before: int, after: int) -> None:
    known = status_series.alias("known")
    there = select(known.c.id).where(known.c.projection_id == after, _same_series(known, status_series))
    names = [status_series.c[name] for name in SERIES]
    missing = select(literal(after), *names).where(
        status_series.c.projection_id == before, ~there.correlate(status_series).exists()
    )
    connection.execute(insert(status_series).from_select(("projection_id", *SERIES), missing))


def _add_rows(connection: Connection, before: int, after: int) -> None:
    """Add the rows of partitions of which the log has no event any more."""
    old, own, place = _old(before, after)
    there = select(partition_status.c.day).where(
        partition_status.c.series_id == own.c.id, partition_status.c.day == old.c.day
    )
    others = [old.c[each.name] for each in partition_status.c if each.name != "series_id"]
    missing = select(own.c.id, *others).select_from(place).where(~there.correlate(old, own).exists())
    names = ["series_id", *(each.name for each in others)]
    connection.execute(insert(partition_status).from_select(names, missing))


def _take(connection: Connection, before: int, after: int, columns: Sequence[str]) -> None:
    """Take a group of columns where the row that was read so far is of a later event."""
    old, own, place = _old(before, after)
    version = next(name for name in columns if name.endswith("_version"))
    run = next((name for name in columns if name.endswith("_run")), None)
    of_retired = [] if run is None else [old.c[run].in_(_RETIRED)]
    found = select(own.c.id.label("own_id"), *old.c).select_from(place).where(*of_retired).subquery("found")
    same = and_(partition_status.c.series_id == found.c.own_id, partition_status.c.day == found.c.day)
    newer = found.c[version] > func.coalesce(partition_status.c[version], _NEVER)
    values = {name: found.c[name] for name in columns}
    connection.execute(update(partition_status).where(same, newer).values(values))


_RETIRED = select(run_head.c.number).join(retired_run, retired_run.c.run_id == run_head.c.run_id)


def _old(before: int, after: int) -> tuple[FromClause, FromClause, FromClause]:
    """Return the rows that were read so far, and the series that they belong to from now on."""
    old, was, own = partition_status.alias("old"), status_series.alias("was"), status_series.alias("own")
    place = old.join(was, and_(was.c.id == old.c.series_id, was.c.projection_id == before)).join(
        own, and_(own.c.projection_id == after, _same_series(own, was))
    )
    return old, own, place


def _same_series(left: FromClause, right: FromClause) -> ColumnElement[bool]:
    return and_(*(left.c[name] == right.c[name] for name in SERIES))
