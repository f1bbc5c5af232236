"""Lines of partition status: those of rows, and those of partitions that nobody has touched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, false, or_, select, true

from sealbook.ledger.events.tables import run_head
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.fetching import fetch
from sealbook.ledger.status.gaps import untouched_days
from sealbook.ledger.status.gathering import Changes
from sealbook.ledger.status.given import row
from sealbook.ledger.status.held import DISPLAYS, FAILED, REASONS, Held, Shape, hold
from sealbook.ledger.status.rows import StatusRow, row_version
from sealbook.ledger.status.tables import day_of, time_of
from sealbook.model import PartitionKey, RunId
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import StatusFilter, StatusLine
from sealbook.model.universe import AssetName

_materialized_run, _attempt_run = run_head.alias("materialized_run"), run_head.alias("attempt_run")
_validator = validator.alias("accepting")


def known_lines(connection: Connection, asked: Asked, where: StatusFilter) -> Iterator[StatusLine]:
    """Yield the lines of rows that are asked for, in no order."""
    names = {each.number: each.name for each in asked.series if each.number is not None}
    if not names:
        return
    changes = Changes(connection, asked)
    query = _query(connection.dialect.name, asked.shape, where)
    for found in fetch(connection, query, asked):
        source, customer_id, query_name = names[found.series_id]
        key = PartitionKey(source, customer_id, query_name, day_of(found.day))
        yield _line(key, found, asked.expectations, changes)


def missing_lines(connection: Connection, asked: Asked) -> Iterator[StatusLine]:
    """Yield the lines of partitions that are due and that nobody has touched, in no order."""
    for each, days in untouched_days(connection, asked):
        for day in days:
            yield untouched_line(_key(each, day), asked.expectations)


def swept_rows(
    connection: Connection, asked: Asked
) -> Iterator[tuple[StatusRow, StaleCode | None, datetime | None]]:
    """Yield the rows that are stale, or were when they were swept last, with the main reason and its time."""
    names = {each.number: each.name for each in asked.series if each.number is not None}
    if not names:
        return
    changes = Changes(connection, asked)
    query = _sweeping(connection.dialect.name, asked.shape)
    for found in fetch(connection, query, asked):
        source, customer_id, query_name = names[found.series_id]
        key = PartitionKey(source, customer_id, query_name, day_of(found.day))
        main = next(iter(_codes(found.reasons)), None)
        since = None if main is None else _since(key, main, found, asked.expectations, changes)
        yield StatusRow(*found[: len(row)]), main, since


def untouched_line(key: PartitionKey, expectations: Expectations) -> StatusLine:
    """Return the line of a partition that has no row."""
    expected, due = expectations.universe.expects(key), expectations.is_due(key)
    return StatusLine(
        key=key,
        last_materialization_run_id=None,
        last_materialization_at=None,
        last_materialization_code_version=None,
        last_attempt_run_id=None,
        last_attempt_at=None,
        last_attempt_outcome=None,
        last_attempt_stage=None,
        stale_since=None,
        stale_reason_code=None,
        stale_reasons=(),
        row_version=None,
        availability=Availability.NONE,
        display=Display.NEVER_MATERIALIZED,
        expected=expected,
        due=due,
        provisional=expected and not due,
        settled=False,
        late=expectations.is_late(key, None),
        attempted=False,
    )


@cache
def _query(dialect: str, shape: Shape, where: StatusFilter) -> Select[Any]:
    held = hold(dialect, shape)
    source = (
        held.rows.source.outerjoin(_materialized_run, _materialized_run.c.number == row.materialized_run)
        .outerjoin(_attempt_run, _attempt_run.c.number == row.attempt_run)
        .outerjoin(_validator, _validator.c.id == row.validator_id)
    )
    return (
        select(
            row.series_id,
            row.day,
            _materialized_run.c.run_id.label("materialized_run_id"),
            row.materialized_at,
            _validator.c.contract_hash,
            _attempt_run.c.run_id.label("attempt_run_id"),
            row.attempt_at,
            row.attempt_outcome,
            row.attempt_stage,
            row.changed_at,
            row.changed_version,
            row.availability,
            held.reasons.label("reasons"),
            held.display.label("display"),
            held.upstream_changed_at.label("upstream_changed_at"),
            held.expected.label("expected"),
            held.due.label("due"),
            held.settled.label("settled"),
            held.late.label("late"),
        )
        .select_from(source)
        .where(held.rows.asked, _taken(held, where))
    )


@cache
def _sweeping(dialect: str, shape: Shape) -> Select[Any]:
    held = hold(dialect, shape)
    found = (held.reasons.label("reasons"), held.upstream_changed_at.label("upstream_changed_at"))
    changing = or_(held.reasons != 0, row.stale_reason.is_not(None))
    return select(*row, *found).select_from(held.rows.source).where(held.rows.asked, changing)


def _taken(held: Held, where: StatusFilter) -> ColumnElement[bool]:
    """Say which rows a filter takes."""
    if where.is_all:
        return true()
    never, good = DISPLAYS.index(Display.NEVER_MATERIALIZED), DISPLAYS.index(Display.MATERIALIZED)
    taken: list[ColumnElement[bool]] = [false()]
    if where.displays:
        taken.append(held.display.in_([DISPLAYS.index(each) for each in where.displays]))
    if where.stale:
        taken.append(held.reasons != 0)
    if where.failed:
        taken.append(FAILED)
    if where.late:
        taken.append(held.late)
    if where.attention:
        taken.append(and_(held.expected, held.display != good, or_(held.due, held.display != never)))
    return or_(*taken)


def _line(key: PartitionKey, found: Row[Any], expectations: Expectations, changes: Changes) -> StatusLine:
    reasons = _codes(found.reasons)
    return StatusLine(
        key=key,
        last_materialization_run_id=_run_id(found.materialized_run_id),
        last_materialization_at=time_of(found.materialized_at),
        last_materialization_code_version=found.contract_hash,
        last_attempt_run_id=_run_id(found.attempt_run_id),
        last_attempt_at=time_of(found.attempt_at),
        last_attempt_outcome=None if found.attempt_outcome is None else AttemptOutcome(found.attempt_outcome),
        last_attempt_stage=None if found.attempt_stage is None else Stage(found.attempt_stage),
        stale_since=_since(key, reasons[0], found, expectations, changes) if reasons else None,
        stale_reason_code=reasons[0] if reasons else None,
        stale_reasons=reasons,
        row_version=row_version(found.changed_at, found.changed_version),
        availability=Availability(found.availability),
        display=DISPLAYS[found.display],
        expected=bool(found.expected),
        due=bool(found.due),
        provisional=bool(found.expected and not found.due),
        settled=bool(found.settled),
        late=bool(found.late),
        attempted=True,
    )


def _codes(bits: int) -> tuple[StaleCode, ...]:
    return tuple(code for place, code in enumerate(REASONS) if bits >> place & 1)


def _since(
    key: PartitionKey, main: StaleCode, found: Row[Any], expectations: Expectations, changes: Changes
) -> datetime | None:
    """Return since when the main reason holds."""
    if main is StaleCode.FRESHNESS_POLICY:
        deadline = expectations.deadline(key)
        return None if deadline is None else deadline.at
    if main is StaleCode.UPSTREAM_CHANGED:
        upstreams = expectations.universe.assets[AssetName(key.source, key.query_name)].upstreams
        gathered = (
            changes.first_after(upstream, found.day, found.materialized_at)
            for upstream in upstreams
            if upstream.all_customers
        )
        return time_of(min(filter(None, (found.upstream_changed_at, *gathered))))
    if main is StaleCode.CODE_CHANGED:
        code = expectations.code(key)
        return None if code is None else code.since
    return time_of(found.materialized_at)


def _run_id(text: str | None) -> RunId | None:
    return None if text is None else RunId(text)


def _key(series: Series, day: int) -> PartitionKey:
    source, customer_id, query_name = series.name
    return PartitionKey(source, customer_id, query_name, day_of(day))
