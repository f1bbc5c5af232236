"""What PostgreSQL is given: arrays. To read an element of one takes no time, and it reads the rows alone.

How to join tables of which it knows nothing it would have to guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Dialect,
    Integer,
    and_,
    any_,
    bindparam,
    case,
    func,
    literal,
    select,
    text,
    tuple_,
    type_coerce,
)
from sqlalchemy.sql.elements import Grouping
from sqlalchemy.types import UserDefinedType

from sealbook.ledger.db.types import json_text
from sealbook.ledger.status.given import GATHERED, KEY, NEVER, NONE, STRETCH, Given, GivenRows, Numbers, row
from sealbook.ledger.status.tables import partition_status

_TO_ARRAY = str.maketrans("[]", "{}")
_PLANNED_FOR = text("SET LOCAL plan_cache_mode = force_custom_plan")


class _Written(UserDefinedType[Sequence[Any]]):
    """Numbers, written as an array at once: the driver would look at each of them several times."""

    cache_ok = True
    render_bind_cast = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """Return what PostgreSQL calls it."""
        return self.name

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str]:  # noqa: ARG002
        """Write the numbers, or lists of them."""
        return lambda values: json_text(values).translate(_TO_ARRAY)


def plan_for_arrays(connection: Connection) -> None:
    """Let statements of this transaction be planned for the arrays that they are given, however often.

    A plan for any arrays, to which PostgreSQL changes after a while, looks for each row through a whole one.
    """
    connection.execute(_PLANNED_FOR)


def one_of(name: str, column: ColumnElement[int]) -> ColumnElement[bool]:
    """Say whether a column is among the numbers of a parameter."""
    return column == any_(_integers(name))


def rows_of_arrays(links: int, *, keyed: bool) -> GivenRows:
    """Return the rows of given series, with so many links each; `keyed` ones are named one by one."""

    def number(name: str) -> ColumnElement[int]:
        return bindparam(name, type_=Integer)

    def own(name: str) -> ColumnElement[int]:
        found: ColumnElement[int] = _integers(f"series_{name}")[row.series_id - number("series_base")]
        return found

    def of_day(what: str, group: ColumnElement[int], name: str) -> ColumnElement[int]:
        # Outside of its bounds an array is null.
        found: ColumnElement[int] = _days(f"{what}_{name}")[group][row.day - number(f"{what}_base")]
        return found

    def of_profile(name: str, default: int) -> ColumnElement[int]:
        # A profile has the days of all its series, of which one may begin later.
        due = and_(row.day >= own("first"), row.day <= own("due_until"))
        return case((due, of_day("days", own("profile"), name)), else_=literal(default, BigInteger))

    asked = [one_of("series_ids", row.series_id), row.day >= number("since"), row.day <= number("until")]
    if keyed:
        arrays = (_integers(f"keys_{name}") for name in KEY)
        keys = func.unnest(*arrays).table_valued(*KEY, name="keys").render_derived()
        asked.append(tuple_(row.series_id, row.day).in_(select(keys.c.series_id, keys.c.day)))
    above = [own(f"link_{place}") for place in range(links)]
    return GivenRows(
        source=partition_status,
        tables=(partition_status,),
        asked=and_(*asked),
        own=own,
        number=own("number") + of_profile("number", 0),
        late_before=of_profile("late_before", -NEVER),
        settled_from=of_profile("settled_from", NEVER),
        contract=_integers("contracts")[row.validator_id],
        gathered=tuple(
            (of_day("gathered", link, "latest"), of_day("gathered", link, "unknown")) for link in above
        ),
    )


def arrays_of(given: Given) -> dict[str, Any]:
    """Return the parameters of a statement of `rows_of_arrays`."""
    return {
        "since": given.since,
        "until": given.until,
        "above_ids": sorted(given.above),
        "above_since": given.above_since,
        "above_until": given.above_until,
        **dict(_of_series(given)),
        **dict(_of_days(given)),
        **{f"keys_{name}": [each[place] for each in given.keys] for place, name in enumerate(KEY)},
    }


def _integers(name: str) -> Any:
    return type_coerce(Grouping(bindparam(name, type_=_Written("INTEGER[]"))), ARRAY(Integer))


def _days(name: str) -> Any:
    """Return an array of arrays, by a group and a day."""
    return type_coerce(Grouping(bindparam(name, type_=_Written("BIGINT[]"))), ARRAY(BigInteger, dimensions=2))


def _of_series(given: Given) -> Iterator[tuple[str, Any]]:
    """Yield arrays by the number of a series, or of a validator: without nulls, which would be counted."""
    ids = [each[0] for each in given.series]
    base = min(ids, default=1) - 1
    yield "series_ids", ids
    yield "series_base", base
    for place, name in enumerate(given.columns):
        values = [NONE] * (max(ids, default=0) - base)
        for each in given.series:
            values[each[0] - base - 1] = each[place]
        yield f"series_{name}", values
    contracts = [NONE] * max(given.contracts, default=0)
    for validator_id, contract in given.contracts.items():
        contracts[validator_id - 1] = contract
    yield "contracts", contracts


def _of_days(given: Given) -> Iterator[tuple[str, Any]]:
    due = (
        (profile, day, *of)
        for profile, each, of in given.stretches()
        if each.due
        for day in range(each.first, each.last + 1)
    )
    yield from _by_day("days", STRETCH, list(due), (0, -NEVER, NEVER))
    yield from _by_day("gathered", GATHERED, given.gathered, (-NEVER, 0))


def _by_day(
    what: str, names: Sequence[str], rows: Sequence[Numbers], defaults: Numbers
) -> Iterator[tuple[str, Any]]:
    """Yield arrays of two dimensions, of rows that begin with a group and a day."""
    base = min((day for _, day, *_ in rows), default=0) - 1
    length = max((day for _, day, *_ in rows), default=base) - base
    groups = max((group for group, *_ in rows), default=0)
    yield f"{what}_base", base
    for place, name in enumerate(names):
        values = [[defaults[place]] * length for _ in range(groups)]
        for group, day, *of in rows:
            values[group - 1][day - base - 1] = of[place]
        yield f"{what}_{name}", values
