"""Who did what by hand, when, why, and to which partitions."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.listing import PARTITIONS, Column, Filter, Listing
from sealbook.console.page import Ask, page
from sealbook.ledger.states.audit import Action
from sealbook.views.audit import AuditFilter, audit_entries, entry_dict, entry_says

_AUDIT = Listing(
    "Audit",
    "sealbook audit",
    [
        Column("When (UTC)", "at", "time"),
        Column("Who", "actor"),
        Column("Action", "action", "badge"),
        Column("What", lambda row: "; ".join(entry_says(dict(row)))),
        Column("Partitions", lambda row: len(row["partitions"]), "number"),
        Column("Why", "reason"),
    ],
    [
        Filter("action", "Action", "--action", choices=tuple(Action)),
        Filter("actor", "Who", "--actor"),
        Filter("from", "Done from", "--from", "date"),
        Filter("to", "Done before", "--to", "date"),
        *PARTITIONS,
    ],
    key="id",
    nothing="Nothing of the kind was done.",
)


def _gather(ask: Ask) -> Answer:
    where = AuditFilter(
        ask.many("action"), ask.one("actor"), ask.one("from"), ask.one("to"), _AUDIT.before(ask)
    )
    entries = audit_entries(ask.book.ledger, ask.selection(), where, _AUDIT.limit(ask))
    return _AUDIT.answer(ask, list(map(entry_dict, entries)))


routes = page("/audit", "list.html", _gather)
