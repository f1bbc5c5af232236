"""Runs, the latest first."""

from __future__ import annotations

import shlex
from dataclasses import replace

from sealbook.console.answers import Answer
from sealbook.console.listing import Column, Filter, Listing, Row
from sealbook.console.page import Ask, page
from sealbook.console.rendering import run_path
from sealbook.model.run_snapshot import RunStatus
from sealbook.views.events import events_of_run
from sealbook.views.runs import list_runs

_RUNS = Listing(
    "Runs",
    "sealbook runs",
    [
        Column("Run", lambda row: (run_path(row["runId"]), row["runId"]), "link"),
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


_EVENTS = Listing(
    "Events",
    "sealbook events",
    [
        Column("Number", "runSeq", "number"),
        Column("Persisted (UTC)", "persistedAt", "time"),
        Column("Event", "eventType"),
        Column("Partition", lambda row: row["stepId"] if _names_partition(row) else None, "key"),
        Column("Step", lambda row: None if _names_partition(row) else row.get("stepId")),
        Column("Attempt", "logicalAttemptId"),
        Column("Says", lambda row: _said(row["eventData"])),
    ],
    [Filter("type", "Event", "--type")],
    key="runSeq",
    nothing="The run has no such event.",
    cursor="after",
)


def _names_partition(row: Row) -> bool:
    return str(row["eventType"]).startswith("Partition") and str(row.get("stepId")).count("/") == 3


def _said(data: object) -> str:
    members = data if isinstance(data, dict) else {"data": data}
    return ", ".join(
        f"{name}={value}"
        for name, value in members.items()
        if name != "partition" and value not in (None, [], {})
    )


def _gather_one(ask: Ask) -> Answer:
    run_id, store = ask.path["run_id"], ask.book.ledger.run_store
    events = events_of_run(
        store,
        ask.book.settings.retention.archive,
        run_id,
        types=ask.many("type"),
        after=_EVENTS.before(ask) or 0,
        limit=_EVENTS.limit(ask),
    )
    rows = [each.to_dict() for each in events]
    snapshot = store.get_snapshot(run_id)
    answer = _EVENTS.answer(ask, rows, run=None if snapshot is None else snapshot.to_dict())
    first, *others = answer.command.split(" --", 1)
    return replace(answer, command=" --".join([f"{first} {shlex.quote(run_id)}", *others]))


def _gather(ask: Ask) -> Answer:
    store = ask.book.ledger.run_store
    rows = list_runs(store, _RUNS.limit(ask), ask.one("before"), ask.many("status"))
    return _RUNS.answer(ask, [each.to_dict() for each in rows])


routes = [*page("/runs", "list.html", _gather), *page("/runs/{run_id:path}", "run.html", _gather_one)]
