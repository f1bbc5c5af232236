"""Lines of partition status: those of rows, and those of partitions that nobody has touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, false, func, or_, select, true

from sealbook.ledger.events.tables import run_head
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.asking import Asking, Series
from sealbook.ledger.status.held import DISPLAYS, REASONS, Held, due_rows, hold
from sealbook.ledger.status.rows import row_version
from sealbook.ledger.status.tables import day_of, partition_status, time_of
from sealbook.ledger.status.timeline import FOREVER
from sealbook.model import PartitionKey, RunId
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import StatusFilter, StatusLine

_row = partition_status.c
_materialized_run, _attempt_run = run_head.alias("materialized_run"), run_head.alias("attempt_run")


def known_lines(
    connection: Connection, asking: Asking, expectations: Expectations, where: StatusFilter
) -> Iterator[StatusLine]:
    """Yield the lines of rows that are asked for, in no order."""
    customers = {each.number: each.customer_id for each in asking.series if each.number is not None}
    if not customers:
        return
    held = hold(connection.dialect.name, asking.asset.upstreams, coded=asking.code is not None)
    rows = connection.execute(_query(held, where), asking.parameters(latest_day(connection, asking)))
    source, query_name = asking.asset.name
    for row in rows:
        key = PartitionKey(source, customers[row.series_id], query_name, day_of(row.day))
        yield _line(key, row, asking, expectations)


def missing_lines(connection: Connection, asking: Asking, expectations: Expectations) -> Iterator[StatusLine]:
    """Yield the lines of partitions that are due and that nobody has touched, in no order."""
    source, query_name = asking.asset.name
    gaps, known = _gaps(connection, asking)
    for each in gaps:
        days = known.get(each.number, set())
        for day in each.due_days():
            if day not in days:
                key = PartitionKey(source, each.customer_id, query_name, day_of(day))
                yield untouched_line(key, expectations)


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


def latest_day(connection: Connection, asking: Asking) -> int:
    """Return the last day of which a row is asked for, where the parameters of a statement depend on it."""
    if not asking.gathers:
        return FOREVER
    source, _ = due_rows(connection.dialect.name)
    query = select(func.max(_row.day)).select_from(source)
    return connection.execute(query, asking.places()).scalar() or -FOREVER


def _query(held: Held, where: StatusFilter) -> Select[Any]:
    bits = held.reason_bits
    return (
        select(
            _row.series_id,
            _row.day,
            _materialized_run.c.run_id.label("materialized_run_id"),
            _row.materialized_at,
            validator.c.contract_hash,
            _attempt_run.c.run_id.label("attempt_run_id"),
            _row.attempt_at,
            _row.attempt_outcome,
            _row.attempt_stage,
            _row.changed_at,
            _row.changed_version,
            _row.availability,
            bits.label("reasons"),
            held.display(bits).label("display"),
            held.upstream_changed_at.label("upstream_changed_at"),
            held.expected.label("expected"),
            held.due.label("due"),
            held.settled.label("settled"),
            held.late.label("late"),
        )
        .select_from(
            held.source.outerjoin(
                _materialized_run, _materialized_run.c.number == _row.materialized_run
            ).outerjoin(_attempt_run, _attempt_run.c.number == _row.attempt_run)
        )
        .where(_asked(held, where))
    )


def _asked(held: Held, where: StatusFilter) -> ColumnElement[bool]:
    """Say which rows a filter takes."""
    if where.is_all:
        return true()
    display = held.display(held.reason_bits)
    never, good = DISPLAYS.index(Display.NEVER_MATERIALIZED), DISPLAYS.index(Display.MATERIALIZED)
    asked: list[ColumnElement[bool]] = [false()]
    if where.displays:
        asked.append(display.in_([DISPLAYS.index(each) for each in where.displays]))
    if where.stale:
        asked.append(held.stale)
    if where.failed:
        asked.append(_row.attempt_outcome == AttemptOutcome.FAILED.value)
    if where.late:
        asked.append(held.late)
    if where.attention:
        asked.append(and_(held.expected, display != good, or_(held.due, display != never)))
    return or_(*asked)


def _line(key: PartitionKey, row: Row[Any], asking: Asking, expectations: Expectations) -> StatusLine:
    reasons = tuple(code for place, code in enumerate(REASONS) if row.reasons >> place & 1)
    since = None
    match reasons[:1]:
        case (StaleCode.FRESHNESS_POLICY,):
            deadline = expectations.deadline(key)
            since = None if deadline is None else deadline.at
        case (StaleCode.UPSTREAM_CHANGED,):
            since = time_of(row.upstream_changed_at)
        case (StaleCode.CODE_CHANGED,):
            since = None if asking.code is None else asking.code.since
        case (_,):
            since = time_of(row.materialized_at)
    return StatusLine(
        key=key,
        last_materialization_run_id=_run_id(row.materialized_run_id),
        last_materialization_at=time_of(row.materialized_at),
        last_materialization_code_version=row.contract_hash,
        last_attempt_run_id=_run_id(row.attempt_run_id),
        last_attempt_at=time_of(row.attempt_at),
        last_attempt_outcome=None if row.attempt_outcome is None else AttemptOutcome(row.attempt_outcome),
        last_attempt_stage=None if row.attempt_stage is None else Stage(row.attempt_stage),
        stale_since=since,
        stale_reason_code=reasons[0] if reasons else None,
        stale_reasons=reasons,
        row_version=row_version(row.changed_at, row.changed_version),
        availability=Availability(row.availability),
        display=DISPLAYS[row.display],
        expected=bool(row.expected),
        due=bool(row.due),
        provisional=bool(row.expected and not row.due),
        settled=bool(row.settled),
        late=bool(row.late),
        attempted=True,
    )


def _run_id(text: str | None) -> RunId | None:
    return None if text is None else RunId(text)


def _gaps(connection: Connection, asking: Asking) -> tuple[list[Series], dict[int | None, set[int]]]:
    """Return the series of which days that are due have no rows, and the days that have."""
    source, is_due = due_rows(connection.dialect.name)
    counts = select(_row.series_id, func.count()).select_from(source).where(is_due).group_by(_row.series_id)
    found: dict[int | None, int] = dict(connection.execute(counts, asking.places()).all())
    gaps = [each for each in asking.series if found.get(each.number, 0) < each.due]
    query = select(_row.series_id, _row.day).select_from(source).where(is_due)
    days: dict[int | None, set[int]] = {}
    for number, day in connection.execute(query, replace(asking, series=gaps).places()):
        days.setdefault(number, set()).add(day)
    return gaps, days
