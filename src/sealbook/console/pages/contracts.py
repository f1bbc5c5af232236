"""Contracts, and what judging under those in force would concern: counted, and from rehearsals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sealbook.console.answers import Answer
from sealbook.console.commands import command_of
from sealbook.console.failures import wants_json
from sealbook.console.forms import Values, in_address, in_form
from sealbook.console.listing import Filter, Listing, partition_of
from sealbook.console.page import Ask, json_response, page
from sealbook.errors import InvalidInput
from sealbook.model.contract import Query
from sealbook.model.selection import Selection
from sealbook.model.staleness import StaleCode
from sealbook.views.contracts import chosen_queries, contract_views

_CONTRACTS = Listing(
    "Contracts",
    "sealbook contract show",
    [],
    [Filter("source", "Source", "--source"), Filter("query", "Query", "--query-name")],
    nothing="No query is configured.",
)
_REHEARSAL = "/contracts/rehearsal"
_SHOWN = 200


def _gather(ask: Ask) -> Answer:
    book, selection = ask.book, ask.selection()
    queries = chosen_queries(book.settings, selection)
    expectations = book.expectations()
    outdated, rehearsed = {}, {}
    for query in queries:
        counts = book.ledger.statuses.counts(expectations, _selection(query))
        outdated[query.source, query.name] = counts.reasons[StaleCode.CODE_CHANGED]
        rehearsed[query.source, query.name] = _rehearsed(ask, query)
    shown = [each.to_dict() for query in queries for each in contract_views(query)]
    return _CONTRACTS.answer(ask, shown, outdated=outdated, rehearsed=rehearsed)


def _gather_rehearsal(ask: Ask) -> Answer:
    query = _query(ask, in_address(ask.request))
    content = _rehearsed(ask, query)
    findings = [(partition_of(each), each) for each in content["findings"][:_SHOWN]]
    command = command_of("sealbook validate --revalidate --dry-run", _selection(query))
    return Answer(content, command, {"findings": findings})


def _rehearsed(ask: Ask, query: Query) -> dict[str, Any]:
    """Return the last rehearsal of a query as it may be shown, and whether its contracts are known."""
    found = ask.console.rehearsals.of(query.source, query.name).to_dict()
    known = {each.contract_hash for each in contract_views(query)}
    found["is_of_another_contract"] = not known.issuperset(found["contract_hashes"])
    shown: dict[str, Any] = ask.console.rows.without_quotes(found)
    return shown


async def _rehearse(request: Request) -> Response:
    ask = Ask(request)
    ask.console.check_may_act(ask.person)
    values = await in_form(request)
    values.check_names(("source", "query"))
    query = _query(ask, values)
    start = ask.console.rehearsals.start
    await run_in_threadpool(start, query.source, query.name, actor=ask.person.name)
    if wants_json(request):
        return json_response(_rehearsed(ask, query))
    return RedirectResponse(f"{_REHEARSAL}?{urlencode({'source': query.source, 'query': query.name})}", 303)


def _query(ask: Ask, values: Values) -> Query:
    """Return the one query that is named; its source may be left out where no other has one of that name."""
    name = values.need("query", "Name the query.")
    selection = replace(values.selection(), queries=(name,))
    ask.book.check(selection)
    queries = chosen_queries(ask.book.settings, selection)
    if len(queries) != 1:
        raise InvalidInput(
            f"there are {len(queries)} queries {name}", field="source", remedy="Name the source as well."
        )
    return queries[0]


def _selection(query: Query) -> Selection:
    return Selection(source=(query.source,), queries=(query.name,))


routes = [
    *page(_REHEARSAL, "rehearsal.html", _gather_rehearsal, lasts=3),
    Route(_REHEARSAL, _rehearse, methods=["POST"]),
    *page("/contracts", "contracts.html", _gather),
]
