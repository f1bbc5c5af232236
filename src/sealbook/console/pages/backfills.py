"""Backfills and how far they are; of each, what has failed."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.listing import Column, Listing, partition_of
from sealbook.console.page import Ask, page
from sealbook.views.backfills import backfill_in_full, backfill_rows

_BACKFILLS = Listing(
    "Backfills",
    "sealbook backfill",
    [
        Column("Plan", lambda row: (f"/backfills/{row['plan_id']}", row["name"] or row["plan_id"]), "link"),
        Column("State", "state", "badge"),
        Column("Partitions", "partitions", "number"),
        Column("Done", "done", "number"),
        Column("Open", "waiting", "number"),
        Column("Worked on", "held", "number"),
        Column("Stopped", "stopped", "number"),
        Column("Requests", "requests", "number"),
        Column("By", "actor"),
        Column("Why", "reason"),
        Column("Begun (UTC)", "carried_out_at", "time"),
        Column("Ended (UTC)", "ended_at", "time"),
    ],
    key="plan_id",
    nothing="There is no backfill yet: `sealbook state backfill` begins one.",
)
_FAILED = Listing(
    "What has failed",
    "sealbook backfill show",
    [
        Column("Partition", partition_of, "key"),
        Column("Tries", "tries", "number"),
        Column("Next try (UTC)", "next_at", "time"),
        Column("Stopped", "stop"),
        Column("Error", "error", "bad"),
    ],
    nothing="Nothing of it has failed.",
)


def _gather(ask: Ask) -> Answer:
    rows = backfill_rows(ask.book.ledger, _BACKFILLS.limit(ask), _BACKFILLS.before(ask))
    return _BACKFILLS.answer(ask, [each.to_dict() for each in rows])


def _gather_one(ask: Ask) -> Answer:
    name = ask.path["name"]
    found = ask.console.rows.without_quotes(backfill_in_full(ask.book.ledger, name))
    return Answer(found, f"sealbook backfill show {name}", {"listing": _FAILED})


routes = [
    *page("/backfills", "list.html", _gather, lasts=10),
    *page("/backfills/{name}", "backfill.html", _gather_one, lasts=10),
]
