"""What of the open work is ready, flow by flow, and the claim of what was picked of it.

Rows go by their place in the table (`ctid` on PostgreSQL, `rowid` on SQLite) within one transaction. A place
may have another row in it by then: so the claim checks once more that what it finds there is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import UtcTimestamp, json_text, microseconds
from sealbook.ledger.schedule.turns import Flow, Ready
from sealbook.ledger.work.tables import FREE, work
from sealbook.model.work import Lane

_HELPING = 128
"""Of so many rows in a batch, a flow is looked at for one more at first."""

_ANY_COST = 2_147_483_647

_CLAIMED = ", ".join((*KEY, "lane", "kind", "fence", "run_id", "cost", "tries", "plan_id"))

_FLOW_OPEN = """NOT EXISTS (SELECT 1 FROM pause AS p WHERE p.source = f.source
    AND p.customer_id = f.customer_id AND p.query_name IS NULL AND (p.until IS NULL OR p.until > :at))"""
_QUERY_OPEN = """NOT EXISTS (SELECT 1 FROM pause AS p WHERE p.source = {w}.source
    AND (p.customer_id IS NULL OR p.customer_id = {w}.customer_id)
    AND p.query_name = {w}.query_name AND (p.until IS NULL OR p.until > :at))"""
_OF_FLOW = f"""{{w}}.lane = f.lane AND {{w}}.source = f.source AND {{w}}.customer_id = f.customer_id
    AND {{w}}.ready_at <= :at AND {FREE}"""
_ASKS_NOTHING = "{w}.kind <> 'fetch'"
_FITS = f"({{w}}.cost <= :room OR {_ASKS_NOTHING})"

_ON_POSTGRESQL = """
    SELECT f.source, f.customer_id, f.pass, w.priority, w.rank, w.place, w.requests
    FROM flow_pass AS f CROSS JOIN LATERAL (
        SELECT w.priority, w.rank, CAST(w.ctid AS text) AS place,
               CASE WHEN w.kind = 'fetch' THEN w.cost ELSE 0 END AS requests
        FROM work AS w WHERE {of_flow} ORDER BY w.priority, w.rank LIMIT :each
    ) AS w
    WHERE f.lane = :lane AND f.source = :source AND {open} AND {chosen}
    ORDER BY f.pass, f.customer_id, w.priority, w.rank LIMIT :rows
"""
_ON_SQLITE = """
    SELECT f.source, f.customer_id, f.pass, w.priority, w.rank, w.rowid AS place,
           CASE WHEN w.kind = 'fetch' THEN w.cost ELSE 0 END AS requests
    FROM flow_pass AS f CROSS JOIN work AS w ON w.rowid IN (
        SELECT x.rowid FROM work AS x WHERE {of_flow} ORDER BY x.priority, x.rank LIMIT :each
    )
    WHERE f.lane = :lane AND f.source = :source AND {open} AND {chosen}
    ORDER BY f.pass, f.customer_id, w.priority, w.rank LIMIT :rows
"""


def find_ready(
    connection: Connection,
    lane: Lane,
    source: str,
    limit: int,
    at: datetime,
    *,
    weights: Mapping[str, int],
    room: int | None,
    pauses: bool,
) -> dict[Flow, tuple[int, list[Ready]]]:
    """Return what is ready of a lane's flows, the lowest passes first, as much as a batch can need.

    Nothing of it costs more than there is room for. `weights` are those of customers that have another than
    one; `pauses` says that there are any to look out for.
    """
    asked = {
        "lane": lane.value,
        "source": source,
        "at": at,
        "room": _ANY_COST if room is None else room,
    }
    dialect, asking = connection.dialect.name, room != 0

    def find(each: int, rows: int, customers: Iterable[str] | None = None) -> list[Row[Any]]:
        query = _finding(dialect, pauses, asking, chosen=customers is not None)
        chosen = {} if customers is None else {"customers": _as_list(dialect, customers)}
        return list(connection.execute(query, {**asked, **chosen, "each": each, "rows": rows}).all())

    # So many of each flow at first: small batches go round one by one, large ones in larger helpings.
    each = 1 + limit // _HELPING
    found = find(each, limit)
    flows = _by_flow(found)
    while len(found) < limit and each < limit and any(len(ready) == each for _, ready in flows.values()):
        each = min(4 * each, limit)  # few flows, of which a batch needs more
        found = find(each, limit * len(flows))
        flows = _by_flow(found)
    if weights and flows:
        # Whoever has more weight than others may be served more often than they in one batch.
        more = min(limit, each * max(weights.values()))
        flows |= _by_flow(find(more, more * len(weights), weights))
    return flows


def _by_flow(rows: Sequence[Row[Any]]) -> dict[Flow, tuple[int, list[Ready]]]:
    flows: dict[Flow, tuple[int, list[Ready]]] = {}
    for source, customer_id, pass_, priority, rank, place, requests in map(tuple, rows):
        ready = flows.setdefault((source, customer_id), (pass_, []))[1]
        ready.append(Ready(priority, rank, place, requests))
    return flows


@cache
def _finding(dialect: str, pauses: bool, asking: bool, chosen: bool) -> TextClause:
    within, query = ("w", _ON_POSTGRESQL) if dialect == "postgresql" else ("x", _ON_SQLITE)
    # Without room, an index of its own has what asks nothing: it may stand behind any number of others.
    of_flow = [_OF_FLOW, _FITS if asking else _ASKS_NOTHING, *([_QUERY_OPEN] if pauses else [])]
    filled = query.format(
        of_flow=" AND ".join(of_flow).format(w=within),
        open=_FLOW_OPEN if pauses else "TRUE",
        chosen=_CHOSEN[dialect] if chosen else "TRUE",
    )
    types: list[BindParameter[Any]] = [bindparam("at", type_=UtcTimestamp)]
    if chosen and dialect == "postgresql":
        types.append(bindparam("customers", type_=ARRAY(Text)))
    return text(filled).bindparams(*types)


_CHOSEN = {
    "postgresql": "f.customer_id = ANY(:customers)",
    "sqlite": "f.customer_id IN (SELECT value FROM json_each(:customers))",
}


def _as_list(dialect: str, values: Iterable[object]) -> object:
    """Return a parameter that has many values."""
    return list(values) if dialect == "postgresql" else json_text(list(values))


def claim_rows(
    connection: Connection, places: Sequence[object], holder: str, at: datetime, until: datetime
) -> Sequence[Row[Any]]:
    """Claim those of some rows that nobody else is just writing, each under a higher fence; return them."""
    values = {"holder": holder, "at": at, "until": until, "stamp": microseconds(at)}
    dialect = connection.dialect.name
    claim = _CLAIM_ON_POSTGRESQL if dialect == "postgresql" else _CLAIM_ON_SQLITE
    return connection.execute(claim, {**values, "places": _as_list(dialect, places)}).all()


_SET = """UPDATE work SET holder = :holder, claimed_at = :at, expires_at = :until,
    fence = {greatest}(fence + 1, :stamp)"""
_TYPES = [bindparam("at", type_=UtcTimestamp), bindparam("until", type_=UtcTimestamp)]
_COLUMNS = [work.c[name] for name in _CLAIMED.split(", ")]

_CLAIM_ON_POSTGRESQL = (
    text(
        f"""{_SET.format(greatest="greatest")} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM work WHERE ctid = ANY(CAST(:places AS tid[])) AND ready_at <= :at AND {FREE}
            FOR UPDATE SKIP LOCKED)) RETURNING {_CLAIMED}"""
    )
    .bindparams(*_TYPES, bindparam("places", type_=ARRAY(Text)))
    .columns(*_COLUMNS)
)
_CLAIM_ON_SQLITE = (
    text(
        f"""{_SET.format(greatest="max")} WHERE rowid IN (SELECT value FROM json_each(:places))
            AND ready_at <= :at AND {FREE} RETURNING {_CLAIMED}"""
    )
    .bindparams(*_TYPES)
    .columns(*_COLUMNS)
)
