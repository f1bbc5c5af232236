"""What of the open work is ready, flow by flow, and the claim of what was picked of it.

Rows go by their places, so the claim checks once more that what it finds there is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import UtcTimestamp, json_text, microseconds
from sealbook.ledger.schedule.places import AT_PLACES, encode_places
from sealbook.ledger.schedule.turns import Flow, Ready
from sealbook.ledger.work.tables import FREE, work
from sealbook.model.work import Lane

_HELPING = 128
"""Of so many rows in a batch, a flow is looked at for one more at first."""

_ANY_COST = 2_147_483_647

_CLAIMED = ", ".join((*KEY, "lane", "kind", "fence", "run_id", "cost", "tries", "plan_id", "claim_run_id"))

_FLOW_OPEN = """NOT EXISTS (SELECT 1 FROM pause AS p WHERE p.source = f.source
    AND p.customer_id = f.customer_id AND p.query_name IS NULL AND (p.until IS NULL OR p.until > :at))"""
_QUERY_OPEN = """NOT EXISTS (SELECT 1 FROM pause AS p WHERE p.source = {w}.source
    AND (p.customer_id IS NULL OR p.customer_id = {w}.customer_id)
    AND p.query_name = {w}.query_name AND (p.until IS NULL OR p.until > :at))"""
_OF_FLOW = f"""{{w}}.lane = f.lane AND {{w}}.source = f.source AND {{w}}.customer_id = f.customer_id
    AND {{w}}.ready_at <= :at AND {FREE}"""
_ASKS_NOTHING = "{w}.kind <> 'fetch'"
_FITS = f"({{w}}.cost <= a.room OR {_ASKS_NOTHING})"

_FOUND = """f.lane, f.source, f.customer_id, f.pass, w.priority, w.rank, w.{place} AS place,
    CASE WHEN w.kind = 'fetch' THEN w.cost ELSE 0 END AS requests"""
_ORDER = "f.pass, f.customer_id, w.priority, w.rank"

_ON_POSTGRESQL = f"""
    SELECT found.* FROM jsonb_to_recordset(CAST(:asked AS jsonb)) AS a (lane text, source text, room integer)
    CROSS JOIN LATERAL (
        SELECT {_FOUND.format(place="place")}
        FROM flow_pass AS f CROSS JOIN LATERAL (
            SELECT w.priority, w.rank, CAST(w.ctid AS text) AS place, w.kind, w.cost
            FROM work AS w WHERE {{of_flow}} ORDER BY w.priority, w.rank LIMIT :each
        ) AS w
        WHERE f.lane = a.lane AND f.source = a.source AND {{open}} AND {{chosen}}
        ORDER BY {_ORDER} LIMIT :rows
    ) AS found
"""
_ON_SQLITE = f"""
    SELECT {_FOUND.format(place="rowid")}
    FROM (SELECT :lane AS lane, :source AS source, :room AS room) AS a CROSS JOIN flow_pass AS f
    CROSS JOIN work AS w ON w.rowid IN (
        SELECT x.rowid FROM work AS x WHERE {{of_flow}} ORDER BY x.priority, x.rank LIMIT :each
    )
    WHERE f.lane = a.lane AND f.source = a.source AND {{open}} AND {{chosen}}
    ORDER BY {_ORDER} LIMIT :rows
"""


class Asked(NamedTuple):
    """A lane of a source, and how many requests there is room for; None is no bound."""

    lane: Lane
    source: str
    room: int | None


Flows = dict[Flow, tuple[int, list[Ready]]]
"""The pass of each flow, and what is ready of it."""


def find_ready(
    connection: Connection,
    asked: Sequence[Asked],
    limit: int,
    at: datetime,
    *,
    weights: Mapping[Flow, int],
    pauses: bool,
) -> dict[Lane, Flows]:
    """Return what is ready of lanes, the lowest passes of each first, as much as a batch can need.

    Nothing of it costs more than there is room for. `weights` are those of customers that have more than one;
    `pauses` says that there are any to look out for.
    """
    find = _Finder(connection, at, pauses)
    # So many of each flow at first: small batches go round one by one, large ones in larger helpings.
    helping = 1 + limit // _HELPING
    lanes: dict[Lane, Flows] = {each.lane: {} for each in asked}
    for each, flows in find(asked, helping, limit).items():
        size = helping
        while _is_short(flows, limit) and size < limit and any(len(of) == size for _, of in flows.values()):
            size = min(4 * size, limit)  # few flows, of which a batch needs more
            flows = find([each], size, limit * len(flows))[each]
        heavy = {customer: weight for (source, customer), weight in weights.items() if source == each.source}
        if heavy and flows:
            # Whoever has more weight than others may be served more often than they in one batch.
            more = min(limit, size * max(heavy.values()))
            flows |= find([each], more, more * len(heavy), heavy)[each]
        lanes[each.lane] |= flows
    return lanes


def _is_short(flows: Flows, limit: int) -> bool:
    return sum(len(ready) for _, ready in flows.values()) < limit


class _Finder:
    """Asks for what is ready: on PostgreSQL all lanes in one question."""

    def __init__(self, connection: Connection, at: datetime, pauses: bool) -> None:
        self._connection = connection
        self._at = at
        self._pauses = pauses

    def __call__(
        self, asked: Sequence[Asked], each: int, rows: int, customers: Iterable[str] | None = None
    ) -> dict[Asked, Flows]:
        """Return up to so many rows of each lane and source, and of each flow; of some customers or all."""
        dialect = self._connection.dialect.name
        chosen = {} if customers is None else {"customers": _as_list(dialect, customers)}
        values = {"at": self._at, "each": each, "rows": rows, **chosen}
        found: dict[tuple[str, str], Flows] = {}
        for asking in (True, False):  # what has no room is asked for what needs none
            of_kind = [_row(one) for one in asked if (one.room != 0) is asking]
            query = _finding(dialect, self._pauses, asking, customers is not None)
            questions = [{"asked": json_text(of_kind)}] if dialect == "postgresql" else of_kind
            for question in questions if of_kind else ():
                for row in self._connection.execute(query, {**values, **question}).all():
                    lane, source, customer_id, pass_, *ready = tuple(row)
                    flows = found.setdefault((lane, source), {})
                    flows.setdefault((source, customer_id), (pass_, []))[1].append(Ready(*ready))
        return {one: found.get((one.lane.value, one.source), {}) for one in asked}


def _row(asked: Asked) -> dict[str, object]:
    room = _ANY_COST if asked.room is None else asked.room
    return {"lane": asked.lane.value, "source": asked.source, "room": room}


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
    dialect = connection.dialect.name
    values = {"holder": holder, "at": at, "until": until, "stamp": microseconds(at)}
    statement = _CLAIM_ON_POSTGRESQL if dialect == "postgresql" else _CLAIM_ON_SQLITE
    return connection.execute(statement, {**values, **encode_places(dialect, places)}).all()


_SET = """UPDATE work SET holder = :holder, claimed_at = :at, expires_at = :until,
    fence = {greatest}(fence + 1, :stamp)"""
_TYPES = [bindparam("at", type_=UtcTimestamp), bindparam("until", type_=UtcTimestamp)]
_COLUMNS = [work.c[name] for name in _CLAIMED.split(", ")]

_CLAIM_ON_POSTGRESQL = (
    text(
        f"""{_SET.format(greatest="greatest")} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM work WHERE {AT_PLACES["postgresql"]} AND ready_at <= :at AND {FREE}
            FOR UPDATE SKIP LOCKED)) RETURNING {_CLAIMED}"""
    )
    .bindparams(*_TYPES)
    .columns(*_COLUMNS)
)
_CLAIM_ON_SQLITE = (
    text(
        f"""{_SET.format(greatest="max")} WHERE {AT_PLACES["sqlite"]}
            AND ready_at <= :at AND {FREE} RETURNING {_CLAIMED}"""
    )
    .bindparams(*_TYPES)
    .columns(*_COLUMNS)
)
