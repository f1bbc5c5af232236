"""Lanes, leases, pauses and budgets: what is worked on, by whom, what waits, and what may be asked."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.listing import PARTITIONS, Column, Filter, Listing, partition_of
from sealbook.console.page import Ask, page
from sealbook.model.work import Lane
from sealbook.views.schedule import budget_lines, lane_rows, lease_rows, pause_rows

_SOON = 10
"""What control keeps has no position in the log: these pages are looked at again after so many seconds."""


_LANES = Listing(
    "Lanes",
    "sealbook control lanes",
    [
        Column("Lane", "lane"),
        Column("Share", "share", "number"),
        Column("Ready", "ready", "number"),
        Column("Waiting", "waiting", "number"),
        Column("Worked on", "held", "number"),
        Column("Paused", "paused", "number"),
        Column("Stopped", "stopped", "number"),
    ],
    PARTITIONS,
)
_LEASES = Listing(
    "Leases",
    "sealbook control leases",
    [
        Column("Holder", "holder", "code"),
        Column("Partition", partition_of, "key"),
        Column("Lane", "lane"),
        Column("Work", "kind"),
        Column("For", "held_seconds", "duration"),
        Column("Lease", lambda row: "ran out" if row["expired"] else "held", "badge"),
        Column("Until (UTC)", "expires_at", "time"),
        Column("Fence", "fence", "number"),
    ],
    [
        Filter("lane", "Lane", "--lane", choices=tuple(Lane)),
        Filter("expired", "Only those that have run out", "--expired", "check"),
    ],
    nothing="Nobody works on anything.",
)
_PAUSES = Listing(
    "Pauses",
    "sealbook control pauses",
    [
        Column("Scope", "scope", "code"),
        Column("Cause", "cause", "badge"),
        Column("Since (UTC)", "since", "time"),
        Column("Until (UTC)", "until", "time"),
        Column("By", "actor"),
        Column("Why", "reason"),
    ],
    nothing="Nothing is paused.",
)
_BUDGET = Listing(
    "Budget",
    "sealbook control budget",
    [
        Column("Source", "source"),
        Column("Lane", "lane"),
        Column("Used in 24 hours", "used", "number"),
        Column("Share", "share", "number"),
        Column("Left of the source", "left", "number"),
        Column("Requests a day", "requests_per_day", "number"),
        Column("More room from (UTC)", "next_room_at", "time"),
    ],
    about="What work in progress has reserved counts. A lane borrows what others do not need.",
    nothing="No source is configured.",
)


def _lanes(ask: Ask) -> Answer:
    ledger = ask.book.ledger
    rows = lane_rows(ledger, ask.book.settings, ask.selection())
    beside = [
        (_PAUSES, "/pauses", [each.to_dict() for each in pause_rows(ledger)]),
        (_LEASES, "/leases", [each.to_dict() for each in lease_rows(ledger, 20)]),
    ]
    return _LANES.answer(ask, [each.to_dict() for each in rows], beside=beside)


def _leases(ask: Ask) -> Answer:
    expired, lanes = ask.one("expired") is not None, ask.many("lane")
    rows = lease_rows(ask.book.ledger, expired=expired, lanes=lanes)
    return _LEASES.answer(ask, [each.to_dict() for each in rows])


def _pauses(ask: Ask) -> Answer:
    return _PAUSES.answer(ask, [each.to_dict() for each in pause_rows(ask.book.ledger)])


def _budget(ask: Ask) -> Answer:
    rows = budget_lines(ask.book.ledger, ask.book.settings)
    return _BUDGET.answer(ask, [each.to_dict() for each in rows])


routes = [
    *page("/lanes", "lanes.html", _lanes, lasts=_SOON),
    *page("/leases", "list.html", _leases, lasts=_SOON),
    *page("/pauses", "list.html", _pauses, lasts=_SOON),
    *page("/budget", "list.html", _budget, lasts=_SOON),
]
