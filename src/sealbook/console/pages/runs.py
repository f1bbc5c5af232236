"""Runs, the latest first."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.page import Ask, page
from sealbook.views.runs import list_runs

_PAGE = 50


def _gather(ask: Ask) -> Answer:
    rows = list_runs(ask.book.ledger.run_store, _PAGE)
    return Answer([each.to_dict() for each in rows], f"sealbook runs --limit {_PAGE}")


routes = page("/runs", "runs.html", _gather)
