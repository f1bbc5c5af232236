"""Changes of what is published, read from the history of pointers (R-CON-5). Reading never writes.

Up to a version that is known that history is fixed, so it may be asked for in several statements. Which
pointers a verdict has withdrawn is asked together with the version, in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    null,
    select,
    true,
    type_coerce,
    union_all,
)

from sealbook.errors import InvalidInput
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.conditions import READABLE, changed_keys, pointer_of
from sealbook.ledger.pointers.tables import pointer, warehouse_version
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.model.published_changes import (
    Changes,
    ChangeToken,
    PointerStep,
    PublishedChange,
    UnreadPointer,
    by_verdict,
    told,
)
from sealbook.model.selection import Selection

_KEY = [pointer.c[name] for name in KEY]
_earlier = pointer.alias("earlier")
_HAD_ONE = (
    select(_earlier.c.run_id)
    .where(same(_earlier, pointer), _earlier.c.valid_from < pointer.c.valid_from)
    .exists()
)


def _within(version: ColumnElement[int]) -> ColumnElement[bool]:
    after, until = (bindparam(name, type_=BigInteger) for name in ("after", "until"))
    return and_(version > after, version <= until)


_NO_RUN = type_coerce(null(), pointer.c.run_id.type)
# Made once: to put these together takes as long as a database takes to answer them.
_BEGUN = (
    select(pointer.c.valid_from, *_KEY, pointer.c.published_at)
    .add_columns(_NO_RUN, type_coerce(null(), BigInteger), pointer.c.run_id, _HAD_ONE)
    .where(_within(pointer.c.valid_from))
)
_ENDED = (
    select(pointer.c.valid_to, *_KEY, pointer.c.closed_at)
    .add_columns(pointer.c.run_id, pointer.c.valid_from, _NO_RUN, true())
    .where(_within(pointer.c.valid_to))
)
"""The columns of a PointerStep: of pointers that began, and of those that ended."""


def token_of_now(connection: Connection) -> ChangeToken:
    """Return the present instant, from which changes can be asked for."""
    rows = connection.execute(_now_query(connection.dialect.name)).all()
    unread = frozenset(UnreadPointer(*pointed) for _, *pointed in rows if pointed[-1] is not None)
    return ChangeToken(rows[0][0], unread)


def read_changes(
    connection: Connection,
    selection: Selection,
    after: ChangeToken,
    until: ChangeToken | None,
    limit: int | None,
) -> Changes:
    """Return what changed of the partitions that are chosen; with a limit, so many or a few more.

    What a version changed is told together: changes are as many as make up whole versions. What changed
    between two instants follows from them and from the history alone: it is the same whenever it is asked.
    """
    now = token_of_now(connection)
    for token in (after, until or now):
        if token.version > now.version:
            raise _not_of_this_book(
                token, f"is of a version that the warehouse has not come to: it is at {now.version}"
            )
    end = now if until is None else until
    if end.version < after.version:
        raise InvalidInput.of("until", str(end), f"a token that is not before {after}")
    version = _until(connection, selection, after.version, end.version, limit)
    unread = set(after.unread)
    items = list(told(_steps(connection, selection, after.version, version), unread))
    if version < end.version:
        return Changes(tuple(items), str(ChangeToken(version, frozenset(unread))), more=True)
    items += _by_verdicts(connection, selection, unread, end)
    return Changes(tuple(items), str(end))


@cache
def _now_query(dialect: str) -> Select[Any]:
    changed = changed_keys(dialect, EVERYTHING)
    unread = (
        select(*_KEY, pointer.c.valid_from)
        .select_from(changed)
        .join(pointer, pointer_of(changed))
        .outerjoin(partition_state, same(partition_state, pointer))
        .where(READABLE.is_not(true()))
        .subquery("unread")
    )
    return (
        select(warehouse_version.c.version, *unread.c)
        .select_from(warehouse_version)
        .outerjoin(unread, true())
    )


def _until(connection: Connection, selection: Selection, after: int, version: int, limit: int | None) -> int:
    """Return the version up to which about so many changes are told."""
    if limit is None:
        return version
    chosen = conditions(connection.dialect.name, pointer, selection)
    sides = [
        select(column.label("version"))
        .where(column > after, column <= version, *chosen)
        .order_by(column)
        .limit(limit)
        .subquery()
        for column in (pointer.c.valid_from, pointer.c.valid_to)
    ]
    both = union_all(*(select(each.c.version) for each in sides)).subquery("changed")
    found = connection.execute(select(both.c.version).order_by(both.c.version).limit(limit)).scalars().all()
    return version if len(found) < limit else int(found[-1])


def _steps(connection: Connection, selection: Selection, after: int, until: int) -> Iterator[PointerStep]:
    """Yield what became of pointers, in the order of versions and then of keys."""
    chosen = conditions(connection.dialect.name, pointer, selection)
    query = union_all(_ENDED.where(*chosen), _BEGUN.where(*chosen))
    span = {"after": after, "until": until}
    found: dict[tuple[object, ...], PointerStep] = {}
    for row in connection.execute(query, span):
        step = PointerStep(*row)
        # What began when another ended took its place. A join in the database would compare all of a version.
        other = found.pop(step[:5], None)
        if other is not None:
            begun, ended = (other, step) if step.begun_run_id is None else (step, other)
            step = begun._replace(ended_run_id=ended.ended_run_id, ended_from=ended.ended_from)
        found[step[:5]] = step
    yield from sorted(found.values(), key=lambda step: step[:5])


def _by_verdicts(
    connection: Connection, selection: Selection, before: set[UnreadPointer], end: ChangeToken
) -> Iterator[PublishedChange]:
    """Say what verdicts withdrew and brought back of pointers that hold, each in the order of keys."""
    withdrawn = sorted(each for each in end.unread - before if selection.matches(each))
    back = sorted(each for each in before - end.unread if selection.matches(each))
    if not withdrawn and not back:
        return
    keys = Selection(keys=[each.key for each in (*withdrawn, *back)])
    pointed = select(*_KEY, pointer.c.valid_from, pointer.c.run_id).where(
        *conditions(connection.dialect.name, pointer, keys)
    )
    runs = {UnreadPointer(*row): run_id for *row, run_id in connection.execute(pointed)}
    for each in (*withdrawn, *back):
        if each not in runs:
            raise _not_of_this_book(end, f"names a pointer of {each.key} that there never was")
        yield by_verdict(each, runs[each], end.version, withdrawn=each in end.unread)


def _not_of_this_book(token: ChangeToken, why: str) -> InvalidInput:
    return InvalidInput(
        f"token {token.version} {why}",
        field="token",
        value=token.version,
        remedy="Is it the token of another book? Else start anew, without a token.",
    )
