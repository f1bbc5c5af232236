"""Runs, the latest first."""

from __future__ import annotations

import shlex
from dataclasses import replace

from sealbook.console.answers import Answer
from sealbook.console.listing import Column, Filter, Listing, Row
from sealbook.console.page import Ask, page
from sealbook.console.rendering import run_path
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
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
        Column("Event", "eventType", "narrow"),
        Column("Partition", lambda row: _partition_of(row), "key"),
        Column("Step", lambda row: _step_of(row), "narrow"),
        Column("Attempt", "logicalAttemptId"),
        Column("Says", lambda row: _said(row["eventData"])),
    ],
    [Filter("type", "Event", "--type")],
    key="runSeq",
    nothing="The run has no such event.",
    cursor="after",
)


def _partition_of(row: Row) -> str | None:
    """Return the partition that an event tells of; another engine may put anything in that place."""
    named = row.get("partition")
    try:
        return None if named is None else str(PartitionKey.parse(named))
    except InvalidInput:
        return None


def _step_of(row: Row) -> str | None:
    """Return the step, without the partition that has a column of its own."""
    step, partition = row.get("stepId"), _partition_of(row)
    return step if step is None or partition is None else str(step).removesuffix(f"/{partition}")


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
    shown = ask.console.rows.without_quotes
    rows = [shown(each.to_dict()) for each in events]
    snapshot = store.get_snapshot(run_id)
    answer = _EVENTS.answer(ask, rows, run=None if snapshot is None else shown(snapshot.to_dict()))
    first, *others = answer.command.split(" --", 1)
    return replace(answer, command=" --".join([f"{first} {shlex.quote(run_id)}", *others]))


def _gather(ask: Ask) -> Answer:
    store = ask.book.ledger.run_store
    rows = list_runs(store, _RUNS.limit(ask), ask.one("before"), ask.many("status"))
    return _RUNS.answer(ask, [ask.console.rows.without_quotes(each.to_dict()) for each in rows])


routes = [*page("/runs", "list.html", _gather), *page("/runs/{run_id:path}", "run.html", _gather_one)]
