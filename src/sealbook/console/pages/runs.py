"""Runs, the latest first."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.listing import Column, Filter, Listing
from sealbook.console.page import Ask, page
from sealbook.model.run_snapshot import RunStatus
from sealbook.views.runs import list_runs

_RUNS = Listing(
    "Runs",
    "sealbook runs",
    [
        Column("Run", "runId", "code"),
        Column("Status", "status", "badge"),
        Column("Started (UTC)", "startedAt", "time"),
        Column("Duration", "durationSeconds", "duration"),
        Column("Sealed", lambda row: row["counters"]["partitionsSealed"], "number"),
        Column("Failed", lambda row: row["counters"]["partitionsFailed"], "number"),
        Column("Accepted", lambda row: row["counters"]["partitionsAccepted"], "number"),
        Column("Rejected", lambda row: row["counters"]["partitionsRejected"], "number"),
        Column("Published", lambda row: row["counters"]["partitionsPublished"], "number"),
        Column("Error", "error", "bad"),
    ],
    [Filter("status", "Status", "--status", choices=tuple(RunStatus))],
    key="runId",
    nothing="There is no such run.",
)


def _gather(ask: Ask) -> Answer:
    store = ask.book.ledger.run_store
    rows = list_runs(store, _RUNS.limit(ask), ask.one("before"), ask.many("status"))
    return _RUNS.answer(ask, [each.to_dict() for each in rows])


routes = page("/runs", "list.html", _gather)
