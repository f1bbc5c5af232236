"""Actions on many partitions: shown as a plan, then carried out as shown, by its id (R-CTL-8, R-CTL-11)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sealbook.console.answers import Answer
from sealbook.console.commands import command_of
from sealbook.console.failures import wants_json
from sealbook.console.forms import FILTERS, Values, in_address, in_form, selection_query
from sealbook.console.page import Ask, json_response, page
from sealbook.console.rendering import render
from sealbook.control.backfills import Backfill
from sealbook.control.previews import kept_preview
from sealbook.errors import Drifted, InvalidInput, NotFound
from sealbook.model.plans import PlanKind, PlanState
from sealbook.views.plans import COMMANDS, MANY, carry_out_command, done_text, notes_of, plan_dict, plan_text

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.control.previews import Preview
    from sealbook.model.plans import Progress
    from sealbook.model.selection import Selection

TITLES = {
    PlanKind.RETRY: (
        "Retry",
        "Failed partitions are pending again: their newest sealed run is judged once more.",
    ),
    PlanKind.REPROCESS: ("Reprocess", "Another run is fetched; what is published stays until it is judged."),
    PlanKind.BACKFILL: ("Backfill", "Days that lack are fetched, beside what is fresh."),
    PlanKind.MARK: ("Give up", "Nothing more is tried of what is open or has failed, until it is cleared."),
    PlanKind.CLEAR: ("Take up", "What was given up or parked is tried again at once."),
}
_SHOWN = 200
_MOST_KEYS = 50
_WHY = "Say why: it is kept in the log."


async def _act(request: Request, kind: PlanKind) -> Response:
    ask = Ask(request)
    ask.console.check_may_act(ask.person)
    if request.method == "GET":
        values = in_address(request)
        values.check_names(FILTERS)
        return _form(request, kind, values)
    values = await in_form(request)
    values.check_names((*FILTERS, "reason", "name", "force"))
    shown = await run_in_threadpool(_preview, ask, kind, values)
    if wants_json(request):
        return json_response(plan_dict(shown))
    return render(request, "plan.html", _told(shown, values.selection()))


def _form(request: Request, kind: PlanKind, values: Values) -> Response:
    title, purpose = TITLES[kind]
    same = command_of(f"sealbook {COMMANDS[kind]}", values.selection(), reason="…")
    shown = {"kind": kind, "title": title, "purpose": purpose, "values": values, "command": same}
    return render(request, "plan_form.html", shown)


def _preview(ask: Ask, kind: PlanKind, values: Values) -> Preview:
    book = ask.console.book_to_act_on(ask.person)
    selection = values.selection()
    if kind is PlanKind.BACKFILL:
        # What is named by key may be unknown to all others; what is fetched must be configured.
        further: dict[str, Any] = {"name": values.one("name"), "force": values.one("force") is not None}
    elif values.one("name") or values.one("force"):
        raise InvalidInput(f"a {kind} has neither a name nor force", field="name")
    else:
        further = {}
    reason = values.need("reason", _WHY)
    return _previewer(book, kind)(selection, actor=ask.person.name, reason=reason, **further)


def _previewer(book: Book, kind: PlanKind) -> Callable[..., Preview]:
    operator = book.operator
    return {
        PlanKind.RETRY: operator.retry,
        PlanKind.REPROCESS: operator.reprocess,
        PlanKind.BACKFILL: operator.backfill,
        PlanKind.MARK: operator.mark,
        PlanKind.CLEAR: operator.clear,
    }[kind]


def _told(
    shown: Preview, selection: Selection, progress: Progress | None = None, **further: Any
) -> dict[str, Any]:
    """Return what the page of a plan needs."""
    plan = shown.plan
    can_repeat = len(selection.keys) <= _MOST_KEYS
    return {
        "shown": shown,
        "title": TITLES[plan.kind][0],
        "text": plan_text(plan),
        "notes": notes_of(shown),
        "items": shown.items[:_SHOWN],
        "many": MANY,
        "again": f"/actions/{plan.kind}?{selection_query(selection)}" if can_repeat else None,
        "done": None if plan.state is PlanState.PREVIEWED else done_text(plan),
        "progress": progress,
        "state": plan.state if progress is None else Backfill(plan, progress).state,
        "refusal": None,
        "differences": [],
        "command": carry_out_command(plan, yes=plan.partitions > MANY),
        **further,
    }


def _gather(ask: Ask) -> Answer:
    plan_id = _plan_id(ask)
    book = ask.book
    shown = kept_preview(book.settings, book.ledger, plan_id)
    schedule = book.ledger.schedule
    progress = schedule.progress(plan_id) if shown.plan.kind.lasts else None
    told = _told(shown, schedule.plan_selection(plan_id), progress=progress)
    same = told.pop("command") if shown.plan.state is PlanState.PREVIEWED else _look(shown)
    return Answer(plan_dict(shown), same, told)


def _look(shown: Preview) -> str:
    return f"{carry_out_command(shown.plan)} --dry-run"


async def _carry_out(request: Request) -> Response:
    ask = Ask(request)
    ask.console.check_may_act(ask.person)
    values = await in_form(request)
    values.check_names(("count",))
    return await run_in_threadpool(_carried_out, ask, values)


def _carried_out(ask: Ask, values: Values) -> Response:
    request, book = ask.request, ask.console.book_to_act_on(ask.person)
    plan_id = _plan_id(ask)
    shown = book.operator.previewed(plan_id)
    count = shown.plan.partitions
    if count > MANY and _typed(values) != str(count):
        why = f"These are {count:,} partitions. Nothing was done: type {count} to go on."
        return _refused(ask, shown, 400, refusal=why)
    try:
        book.operator.carry_out(plan_id, actor=ask.person.name)
    except Drifted as drifted:
        return _refused(ask, shown, 409, refusal=str(drifted.remedy), differences=drifted.differences)
    book.catch_up()
    ask.console.acted()
    if wants_json(request):
        return json_response(plan_dict(book.operator.previewed(plan_id)))
    return RedirectResponse(f"/plans/{plan_id}", 303)


def _refused(ask: Ask, shown: Preview, status: int, **why: Any) -> Response:
    if wants_json(ask.request):
        return json_response({"error": why["refusal"], **why}, status)
    selection = ask.book.ledger.schedule.plan_selection(shown.plan.id)
    return render(ask.request, "plan.html", _told(shown, selection, **why), status=status)


def _typed(values: Values) -> str:
    return (values.one("count") or "").replace(",", "").strip()


def _plan_id(ask: Ask) -> int:
    text = ask.path["plan_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"there is no plan {text}")
    return int(text)


routes = [
    *(
        Route(f"/actions/{kind}", partial(_act, kind=kind), methods=["GET", "POST"], name=f"act-{kind}")
        for kind in PlanKind
    ),
    *page("/plans/{plan_id}", "plan.html", _gather),
    Route("/plans/{plan_id}", _carry_out, methods=["POST"]),
]
