"""Actions that are no plan, each at its address, and `/actions`, where all of them are listed."""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sealbook.console.deeds import ACTIONS, Action, By
from sealbook.console.failures import wants_json
from sealbook.console.forms import FILTERS, Values, in_address, in_form
from sealbook.console.page import Ask, json_response
from sealbook.console.pages.plans import TITLES
from sealbook.console.rendering import render
from sealbook.errors import Drifted, InvalidInput
from sealbook.views.deeds import Deed
from sealbook.views.encoding import encode
from sealbook.views.plans import MANY

_WHY = "Say why: it is kept in the log."
_LOOKS = "to see what it would do"


async def _act(request: Request, name: str) -> Response:
    ask, action = Ask(request), ACTIONS[name]
    ask.console.check_may_act(ask.person)
    if request.method == "GET":
        values = in_address(request)
        values.check_names(action.fields)
        return render(request, "deed.html", _asked(name, action, values))
    values = await in_form(request)
    values.check_names((*action.fields, "reason", "seen", "count"))
    return await run_in_threadpool(_look if values.one("seen") is None else _do, ask, name, values)


def _asked(name: str, action: Action, values: Values) -> dict[str, object]:
    """Return what the page of an action needs before anything was looked at."""
    return {
        "name": name,
        "action": action,
        "values": values,
        "deed": None,
        "seen": None,
        "count": 0,
        "many": MANY,
        "refusal": None,
        "differences": [],
        "done": False,
        "back": None,
        "command": action.command(values),
    }


def _look(ask: Ask, name: str, values: Values) -> Response:
    """Show what would be done, and ask whether it is meant."""
    values.need("reason", _WHY)
    action = ACTIONS[name]
    deed = _planned(ask, action, values)
    if wants_json(ask.request):
        return json_response(deed.content)
    return render(ask.request, "deed.html", _seen(name, values, deed))


def _seen(name: str, values: Values, deed: Deed) -> dict[str, object]:
    action = ACTIONS[name]
    asked = _asked(name, action, values)
    return {**asked, "deed": deed, "seen": encode(deed.content).decode(), "count": action.count(deed.content)}


def _planned(ask: Ask, action: Action, values: Values) -> Deed:
    book = ask.console.book_to_act_on(ask.person)
    return action.do(book, values, By(ask.person.name, _LOOKS, dry_run=True))


def _do(ask: Ask, name: str, values: Values) -> Response:
    """Do what was shown, unless it is another by now."""
    action = ACTIONS[name]
    reason = values.need("reason", _WHY)
    planned = _planned(ask, action, values)
    shown = _seen(name, values, planned)
    differences = _differences(action, values.one("seen") or "", planned)
    if differences:
        if wants_json(ask.request):
            raise Drifted("since it was shown the world has moved", differences)
        why = "Since it was shown the world has moved. Nothing was done."
        told = {**shown, "refusal": why, "differences": differences}
        return render(ask.request, "deed.html", told, status=409)
    count = action.count(planned.content)
    if count > MANY and (values.one("count") or "").replace(",", "") != str(count):
        why = f"These are {count:,} partitions. Nothing was done: type {count} to go on."
        return render(ask.request, "deed.html", {**shown, "refusal": why}, status=400)
    book = ask.console.book_to_act_on(ask.person)
    done = action.do(book, values, By(ask.person.name, reason, dry_run=False))
    book.catch_up()
    ask.console.acted()
    if wants_json(ask.request):
        return json_response(done.content)
    told = {**_asked(name, action, values), "deed": done, "done": True, "back": action.back(values)}
    return render(ask.request, "deed.html", told)


def _differences(action: Action, seen: str, now: Deed) -> list[str]:
    """Say of what must hold what it was when it was shown, and what it is."""
    try:
        before = msgspec.json.decode(seen, type=dict[str, object])
    except msgspec.DecodeError:
        raise InvalidInput("what was shown is not told", field="seen", remedy="Look at it again.") from None
    after = msgspec.json.decode(encode(now.content), type=dict[str, object])
    return [
        f"{name}: was {before.get(name)}, is {after.get(name)}"
        for name in action.holds
        if before.get(name) != after.get(name)
    ]


async def _list(request: Request) -> Response:
    ask = Ask(request)
    ask.console.check_may_act(ask.person)
    values = in_address(request)
    values.check_names(FILTERS)
    plans = [(kind.value, *TITLES[kind]) for kind in TITLES]
    others = [(name, each.title, each.purpose) for name, each in ACTIONS.items()]
    shown = {"plans": plans, "others": others, "query": request.url.query, "values": values}
    return render(request, "actions.html", shown)


routes = [
    Route("/actions", _list),
    *(
        Route(f"/actions/{name}", partial(_act, name=name), methods=["GET", "POST"], name=f"do-{name}")
        for name in ACTIONS
    ),
]
