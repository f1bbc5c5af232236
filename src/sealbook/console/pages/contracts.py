"""Contracts, and what judging under those in force would concern."""

from __future__ import annotations

from dataclasses import replace

from sealbook.console.answers import Answer
from sealbook.console.listing import Filter, Listing
from sealbook.console.page import Ask, page
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


def _gather(ask: Ask) -> Answer:
    book, selection = ask.book, ask.selection()
    queries = chosen_queries(book.settings, selection)
    expectations = book.expectations()
    outdated = {}
    for query in queries:
        chosen = replace(Selection(), source=(query.source,), queries=(query.name,))
        counts = book.ledger.statuses.counts(expectations, chosen)
        outdated[query.source, query.name] = counts.reasons[StaleCode.CODE_CHANGED]
    shown = [each.to_dict() for query in queries for each in contract_views(query)]
    return _CONTRACTS.answer(ask, shown, outdated=outdated)


routes = page("/contracts", "contracts.html", _gather)
