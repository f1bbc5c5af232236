"""What a person may do that is no plan: looked at first by a dry run, then done if that still holds."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sealbook.console.commands import command_of
from sealbook.console.forms import Values
from sealbook.console.rendering import key_path
from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import PartitionKey, RunId
from sealbook.model.keys import normalise_customer_id
from sealbook.model.publication import check_cut_name
from sealbook.model.selection import Selection
from sealbook.views.choosing import parse_end, parse_key
from sealbook.views.deeds import (
    Deed,
    backfill_changed,
    cancelled,
    cut_made,
    cut_planned,
    paused,
    resumed,
    rolled_back,
)

if TYPE_CHECKING:
    from sealbook.book import Book


@dataclass(frozen=True, slots=True)
class By:
    """Who does something, and why; a dry run only looks what it would do."""

    actor: str
    reason: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: what is asked for, what does it, and what must still hold when it is done."""

    title: str
    purpose: str
    fields: Mapping[str, str]
    """Names of what is asked for, with their labels."""
    do: Callable[[Book, Values, By], Deed]
    command: Callable[[Values], str]
    holds: tuple[str, ...] = ()
    """Members of what a dry run says that must be the same when it is done."""
    count: Callable[[Mapping[str, Any]], int] = lambda _: 0
    """How many partitions it is done to, where somebody should know."""
    back: Callable[[Values], str] = lambda _: "/"
    """Where to look at what came of it."""
    optional: tuple[str, ...] = ()


def _rollback(book: Book, values: Values, by: By) -> Deed:
    to = RunId(values.need("run", "Choose one of the partition's runs."))
    done = book.rollback(_key(values), to, actor=by.actor, reason=by.reason, dry_run=by.dry_run)
    return rolled_back(done, to, dry_run=by.dry_run)


def _pause(book: Book, values: Values, by: By) -> Deed:
    scope, text = _scope(values), values.one("until")
    until = None if text is None else parse_end("until", text)
    book.check(scope.selection)
    waiting = sum(1 for _ in book.ledger.reader.schedule.open_work(scope.selection))
    if not by.dry_run:
        book.operator.pause(scope, actor=by.actor, reason=by.reason, until=until)
    return paused(scope, until, waiting, dry_run=by.dry_run)


def _resume(book: Book, values: Values, by: By) -> Deed:
    scope = _scope(values)
    before = [each.scope for each in book.ledger.reader.schedule.pauses()]
    if not by.dry_run:
        book.operator.resume(scope, actor=by.actor, reason=by.reason)
    return resumed(scope, before, dry_run=by.dry_run)


def _cancel(book: Book, values: Values, by: By) -> Deed:
    run_id = RunId(values.need("run", "Name the run."))
    left = book.operator.cancel(run_id, actor=by.actor, reason=by.reason, dry_run=by.dry_run)
    return cancelled(run_id, left, dry_run=by.dry_run)


def _cut(book: Book, values: Values, by: By) -> Deed:
    name = values.one("name")
    if name is not None:
        check_cut_name(name)
    if by.dry_run:
        return cut_planned(name, book.status_counts())
    return cut_made(book.ledger.pointers.create_cut(name, note=by.reason, actor=by.actor))


def _backfill(verb: str) -> Callable[[Book, Values, By], Deed]:
    def change(book: Book, values: Values, by: By) -> Deed:
        name, operator = values.need("name", "Name the backfill."), book.operator
        if by.dry_run:
            return backfill_changed(operator.find_backfill(name), dry_run=True)
        done = getattr(operator, f"{verb}_backfill")(name, actor=by.actor, reason=by.reason)
        return backfill_changed(done, dry_run=False)

    return change


def _backfill_action(verb: str, title: str, purpose: str) -> Action:
    return Action(
        title,
        purpose,
        {"name": "Backfill: its name, or the number of its plan"},
        _backfill(verb),
        lambda values: _command(f"backfill {verb}", values, "name"),
        ("state",),
        lambda content: content["waiting"] + content["held"] if verb == "cancel" else 0,
        lambda _: "/backfills",
    )


def _command(words: str, values: Values, *arguments: str, why: str = "reason", **options: str) -> str:
    """Return the command that does the same; `options` are the names of what was given for each."""
    given = [shlex.quote(text) for text in map(values.one, arguments) if text is not None]
    chosen: dict[str, object] = {option: values.one(name) for option, name in options.items()}
    reason = values.one("reason") or "…"
    return command_of(" ".join(["sealbook", words, *given]), Selection(), **chosen, **{why: reason})


_SCOPE = {"source": "Source", "customer": "Customer", "query": "Query"}


def _scope_action(verb: str, title: str, purpose: str, do: Callable[[Book, Values, By], Deed]) -> Action:
    ends = {"until": "Until: 2h, 3d, or a time in UTC"} if verb == "pause" else {}
    return Action(
        title,
        purpose,
        {**_SCOPE, **ends},
        do,
        lambda values: _command(f"state {verb}", values, **{name: name for name in (*_SCOPE, *ends)}),
        ("paused",) if verb == "resume" else (),
        back=lambda _: "/lanes",
        optional=("customer", "query", *ends),
    )


def _key(values: Values) -> PartitionKey:
    return parse_key(values.need("key", "Name the partition."))


def _scope(values: Values) -> Scope:
    customer = values.one("customer")
    source = values.need("source", "Name the source.")
    return Scope(source, None if customer is None else normalise_customer_id(customer), values.one("query"))


ACTIONS: Mapping[str, Action] = {
    "rollback": Action(
        "Roll back",
        "Another run that was accepted gets authority, and consumers follow at once. It holds.",
        {"key": "Partition", "run": "Run that gets authority"},
        _rollback,
        lambda values: _command("state rollback", values, "key", to="run"),
        ("from_run_id", "newest_run_id", "is_readable"),
        back=lambda values: key_path(_key(values)),
    ),
    "pause": _scope_action(
        "pause", "Pause", "Nothing more is begun of a source, or of a customer or a query of it.", _pause
    ),
    "resume": _scope_action(
        "resume", "Resume", "What was paused goes on: name it as it was paused.", _resume
    ),
    "cancel": Action(
        "Cancel a run",
        "What a run has yet to do will not be done. What it published stays.",
        {"run": "Run"},
        _cancel,
        lambda values: _command("state cancel", values, "run"),
        ("partitions",),
        lambda content: len(content["partitions"]),
        lambda _: "/runs",
    ),
    "pause-backfill": _backfill_action(
        "pause", "Pause a backfill", "Nothing more of it is begun until it resumes."
    ),
    "resume-backfill": _backfill_action("resume", "Resume a backfill", "It goes on where it was paused."),
    "cancel-backfill": _backfill_action(
        "cancel", "Cancel a backfill", "No more of it is fetched: what it leaves undone is given up."
    ),
    "cut": Action(
        "Cut",
        "What consumers can read now is pinned under a name: a read at the cut always gives the same rows.",
        {"name": "Name of the cut; else its version is"},
        _cut,
        lambda values: _command("warehouse cut create", values, "name", why="note"),
        back=lambda _: "/cuts",
        optional=("name",),
    ),
}
"""By the last part of their addresses."""
