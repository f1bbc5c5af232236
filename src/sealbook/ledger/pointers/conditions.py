"""Conditions on pointers and the states they mirror: what agrees, what is readable, what is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    case,
    func,
    literal,
    not_,
    or_,
    select,
    true,
    union_all,
)

from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.locations import files_run
from sealbook.ledger.pointers.tables import authority_change, cut, load_record, pointer, removal
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import attempt, partition_state, rollback
from sealbook.model import Outcome, Status
from sealbook.model.artifacts import FIRST_FORMAT, Action
from sealbook.model.publication import Withdrawal
from sealbook.model.selection import Selection

SUCCESS = partition_state.c.status == Status.SUCCESS.value
"""The partition has an authoritative run."""

OPEN = pointer.c.valid_to.is_(None)
"""The pointer holds now."""

POINTED = pointer.c.run_id.is_not(None)
"""There is a pointer; for where it comes from an outer join."""

CURRENT = and_(
    pointer.c.run_id == partition_state.c.current_run_id,
    pointer.c.schema_version == partition_state.c.schema_version,
)
"""The pointer names what the authority names."""

STATUS = func.coalesce(partition_state.c.status, literal(Status.PENDING, partition_state.c.status.type))
"""The status of the partition; pending where there is no row (R-STATE-1), as after an outer join."""

NO_SUCCESS = SUCCESS.is_not(true())
"""The partition has no authoritative run, or no state at all; for where it comes from an outer join."""


def _agrees(loaded: ColumnElement[int]) -> ColumnElement[bool]:
    # A re-validation may have counted the same run anew (R-STATE-10); a record that is lost counts nothing.
    counted = func.coalesce(loaded, -1) == partition_state.c.record_count
    return or_(and_(SUCCESS, POINTED, CURRENT, counted), and_(NO_SUCCESS, not_(POINTED)))


AGREES = _agrees(
    select(load_record.c.record_count)
    .where(same(load_record, pointer, "run_id", "schema_version"))
    .correlate(pointer)
    .scalar_subquery()
)
"""A load has nothing to do about the partition (R-WH-1)."""

DIFFERS = AGREES.is_not(true())
"""A load has something to do about it; also where there is no state to compare with."""

ACTION = case(
    (NO_SUCCESS, literal(Action.HIDE.value)),
    (not_(POINTED), literal(Action.LOAD.value)),
    else_=literal(Action.REPLACE.value),
)
"""What a load does where they do not agree (R-WH-1)."""

_latest_outcome = (
    select(attempt.c.outcome)
    .where(same(attempt, pointer, "run_id"))
    .order_by(attempt.c.attempt.desc())
    .limit(1)
    .correlate(pointer)
    .scalar_subquery()
)
# A run that is behind was accepted once, but may have been rejected since. If it was the authority, and
# another run was accepted before a loader came by, it must not come back into sight.
READABLE = and_(
    SUCCESS,
    OPEN,
    or_(
        pointer.c.run_id == partition_state.c.current_run_id,
        func.coalesce(_latest_outcome, Outcome.REJECTED.value) == Outcome.ACCEPTED.value,
    ),
)
"""Readers see the run that the pointer names (R-CON-1, R-CON-2, R-WH-5)."""


_away = rollback.alias("away")
_back = rollback.alias("back")
_brought_back = select(_back.c.override_id).where(
    same(_back, _away), _back.c.override_id > _away.c.override_id, _back.c.to_run_id == _away.c.from_run_id
)
_rolled_back_from = select(_away.c.override_id).where(
    same(_away, pointer),
    _away.c.from_run_id == pointer.c.run_id,
    _away.c.to_run_id < _away.c.from_run_id,
    not_(_brought_back.exists()),
)
WITHDRAWN = case(
    (_latest_outcome != Outcome.ACCEPTED.value, literal(Withdrawal.REJECTED.value)),
    (_rolled_back_from.correlate(pointer).exists(), literal(Withdrawal.ROLLED_BACK.value)),
)
"""Why the run that a pointer of the past names is not read in the present any more; null if it could be."""


AT_CUT = and_(
    pointer.c.valid_from <= cut.c.version,
    or_(pointer.c.valid_to.is_(None), pointer.c.valid_to > cut.c.version),
)
"""The pointer held when the cut was made."""


TAKEN = and_(
    removal.c.run_id.is_not(None),
    or_(load_record.c.run_id.is_(None), removal.c.copy >= load_record.c.copy),
)
"""A clean-up condemned the files of an artifact, or deleted them; for outer joins with `removal_of`."""

NEXT_COPY = case(
    (TAKEN, removal.c.copy + 1),
    # Its files have names without a digest: what is written anew has others.
    (and_(load_record.c.format == FIRST_FORMAT, load_record.c.copy == 0), 1),
    else_=func.coalesce(load_record.c.copy, 0),
)
"""The copy that a load stages of an artifact if its files are not there; for the same joins."""


def removal_of(filed: FromClause) -> ColumnElement[bool]:
    """Say that a removal is that of an artifact's files; of which copy, it says itself."""
    return and_(same(removal, filed, "schema_version"), removal.c.run_id == files_run(filed))


def record_of(artifact: FromClause) -> ColumnElement[bool]:
    """Say that a load record is that of an artifact."""
    return same(load_record, artifact, "run_id", "schema_version")


def pointer_of(partition: FromClause) -> ColumnElement[bool]:
    """Say that a pointer is the one that holds now for a partition."""
    return and_(same(pointer, partition), OPEN)


def changed_keys(dialect: str, selection: Selection, *, full: bool = False) -> FromClause:
    """Return the keys that may not agree, each once, as a table.

    They are those noted as changed; with `full`, all that do not agree, whatever is noted (R-WH-8).
    """
    if full:
        return union_all(*_differing(dialect, selection)).subquery("changed")
    keys = select(*(authority_change.c[name] for name in KEY))
    chosen = conditions(dialect, authority_change, selection)
    return keys.where(*chosen).distinct().subquery("changed")


def _differing(dialect: str, selection: Selection) -> Iterator[Select[Any]]:
    """Yield the keys of states that do not agree with a pointer or its absence, and of stateless pointers."""
    yield (
        select(*(partition_state.c[name] for name in KEY))
        .outerjoin(pointer, pointer_of(partition_state))
        .outerjoin(load_record, record_of(pointer))  # joined: looked up one by one, all of them take long
        .where(_agrees(load_record.c.record_count).is_not(true()))
        .where(*conditions(dialect, partition_state, selection))
    )
    stateless = not_(select(partition_state.c.status).where(same(partition_state, pointer)).exists())
    keys = select(*(pointer.c[name] for name in KEY))
    yield keys.where(OPEN, stateless, *conditions(dialect, pointer, selection))
