"""Conditions on pointers and the states they mirror: what agrees, what is readable, what is asked for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any, TypedDict, cast

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    FromClause,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    case,
    column,
    func,
    literal,
    not_,
    or_,
    select,
)

from sealbook.errors import InvalidInput
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import json_text
from sealbook.ledger.pointers.tables import authority_change, cut, pointer
from sealbook.ledger.states.reader import KeyFilters, matching
from sealbook.ledger.states.tables import attempt, partition_state
from sealbook.model import Outcome, RunId, Status
from sealbook.model.keys import check_customer_id
from sealbook.model.publication import Action

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

AGREES = or_(and_(SUCCESS, POINTED, CURRENT), and_(not_(SUCCESS), not_(POINTED)))
"""A load has nothing to do about the partition (R-WH-1)."""

ACTION = case(
    (not_(SUCCESS), literal(Action.HIDE.value)),
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


AT_CUT = and_(
    pointer.c.valid_from <= cut.c.version,
    or_(pointer.c.valid_to.is_(None), pointer.c.valid_to > cut.c.version),
)
"""The pointer held when the cut was made."""


def pointer_of(partition: FromClause) -> ColumnElement[bool]:
    """Say that a pointer is the one that holds now for a partition."""
    return and_(same(pointer, partition), OPEN)


class PointerFilters(TypedDict, total=False):
    """What pointers can be filtered by; None filters nothing, `since` and `until` are both included."""

    source: str | None
    query_name: str | None
    customers: Collection[str] | None
    since: date | None
    until: date | None


def filtered(dialect: str, table: Table, filters: PointerFilters) -> list[ColumnElement[bool]]:
    """Check filters, and return them as conditions on a table that has the columns of a key."""
    of_key = {name: value for name, value in filters.items() if name != "customers"}
    conditions = matching(cast("KeyFilters", of_key), table)
    customers = filters.get("customers")
    if customers is not None:
        for customer in _several("customers", customers):
            check_customer_id("any", customer)
        conditions.append(_among(dialect, table.c.customer_id, list(customers)))
    return conditions


def changed_keys(dialect: str, filters: PointerFilters) -> FromClause:
    """Return the keys that may not agree, each once, as a table."""
    keys = select(*(authority_change.c[name] for name in KEY))
    return keys.where(*filtered(dialect, authority_change, filters)).distinct().subquery("changed")


def of_runs(dialect: str, table: Table, runs: Collection[str]) -> ColumnElement[bool]:
    """Say that a row is of one of these runs."""
    return _among(dialect, table.c.run_id, [RunId(run) for run in _several("runs", runs)])


def _several(name: str, values: Collection[str]) -> Collection[str]:
    if isinstance(values, str) or not isinstance(values, Collection):
        raise InvalidInput.of(name, values, "a list or a set")
    return values


def _among(dialect: str, each: ColumnElement[str], values: list[str]) -> ColumnElement[bool]:
    """Say that a column has one of any number of values: they are one parameter."""
    if dialect == "postgresql":
        array: BindParameter[Any] = bindparam(None, values, type_=ARRAY(Text))
        return each == any_(array)
    return each.in_(select(func.json_each(json_text(values)).table_valued(column("value")).c.value))
