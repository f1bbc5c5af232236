"""What somebody should look at: withdrawn, late, given up or parked."""

from __future__ import annotations

from dataclasses import asdict

from sealbook.console.answers import Answer
from sealbook.console.listing import PARTITIONS, Column, Listing
from sealbook.console.page import Ask, page

_ALERTS = Listing(
    "Alerts",
    "sealbook status alerts",
    [
        Column("Kind", "kind", "badge"),
        Column("About", lambda row: row["subject"] if row["subject"].count("/") == 3 else None, "key"),
        Column("Since (UTC)", "since", "time"),
        Column("What", "message"),
        Column("What to do", "command", "code"),
    ],
    PARTITIONS,
    about="What somebody should look at now, the worst first. Looking sends nothing.",
    nothing="All is well.",
)


def _gather(ask: Ask) -> Answer:
    return _ALERTS.answer(ask, [asdict(each) for each in ask.book.alerts(ask.selection())])


routes = page("/alerts", "list.html", _gather)
