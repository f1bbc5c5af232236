"""What SQLite is given: JSON, of which it makes tables, to read the rows by their key, stretch by stretch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Column,
    FromClause,
    Integer,
    and_,
    bindparam,
    func,
    select,
    true,
    tuple_,
)

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.status.given import GATHERED, KEY, STRETCH, Given, GivenRows, row
from sealbook.ledger.status.tables import partition_status
from sealbook.ledger.status.timeline import FOREVER

_STRETCH = ("profile", "begin", "end", *STRETCH)
_GATHERED = ("place", *GATHERED)
_CONTRACT = ("validator_id", "contract")


def rows_of_tables(columns: Sequence[str], links: int, *, keyed: bool) -> GivenRows:
    """Return the rows of given series, with so many links each; `keyed` ones are named one by one."""
    series, stretch = _table("series", columns), _table("stretches", _STRETCH)
    since, until = bindparam("since", type_=Integer), bindparam("until", type_=Integer)
    own = [each for each in series.c if each.name not in ("number", "profile")]
    place = (
        select(
            *own,
            (series.c.number + stretch.c.number).label("number"),
            func.max(since, stretch.c.begin).label("begin"),
            func.min(until, stretch.c.end).label("end"),
            stretch.c.late_before,
            stretch.c.settled_from,
        )
        .select_from(series.join(stretch, stretch.c.profile == series.c.profile))
        .cte("place")
        .prefix_with("MATERIALIZED")
    )
    within = and_(row.series_id == place.c.series_id, row.day >= place.c.begin, row.day <= place.c.end)
    source: FromClause = place.join(partition_status, within)
    given, gathered = _table("gathered", _GATHERED), []
    for number in range(links):
        found = given.alias(f"gathered_{number}")
        source = source.outerjoin(found, found.c.place == _place(place.c[f"link_{number}"], row.day))
        gathered.append((found.c.latest, found.c.unknown))
    contracts, keys = _table("contracts", _CONTRACT), _table("keys", KEY)
    judged = select(contracts.c.contract).where(contracts.c.validator_id == row.validator_id)
    named = tuple_(row.series_id, row.day).in_(select(keys.c.series_id, keys.c.day))
    return GivenRows(
        source=source,
        tables=(place, partition_status),
        asked=named if keyed else true(),
        own=lambda name: place.c[name],
        number=place.c.number,
        late_before=place.c.late_before,
        settled_from=place.c.settled_from,
        contract=judged.correlate(partition_status).scalar_subquery(),
        gathered=tuple(gathered),
    )


def tables_of(given: Given) -> dict[str, Any]:
    """Return the parameters of a statement of `rows_of_tables`."""
    stretches = ((profile, each.first, each.last, *of) for profile, each, of in given.stretches())
    parameters: dict[str, Any] = {"since": given.since, "until": given.until}
    for name, columns, rows in (
        ("series", given.columns, given.series),
        ("stretches", _STRETCH, stretches),
        ("contracts", _CONTRACT, given.contracts.items()),
        ("gathered", _GATHERED, ((_place(link, day), *of) for link, day, *of in given.gathered)),
        ("keys", KEY, given.keys),
    ):
        parameters |= encode_rows((dict(zip(columns, each, strict=True)) for each in rows), name)
    return parameters


def _table(name: str, columns: Sequence[str]) -> CTE:
    numbers = [Column(each, BigInteger) for each in columns]
    return select(given_rows("sqlite", numbers, name)).cte(name).prefix_with("MATERIALIZED")


def _place(link: Any, day: Any) -> Any:
    """Return one number for a link and a day: SQLite makes an index of one column alone here."""
    return link * (2 * FOREVER) + day
