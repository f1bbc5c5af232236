"""The front door: the grid of every partition, drawn on a canvas by scripts, and a table without them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from sealbook.console.answers import Answer
from sealbook.console.commands import command_of
from sealbook.console.forms import selection_query
from sealbook.console.page import Ask, page
from sealbook.console.rendering import key_path
from sealbook.model.display import GOOD, Cell
from sealbook.model.selection import Selection
from sealbook.views.choosing import words_of
from sealbook.views.grid import Step
from sealbook.views.sheet import MOST_ROWS, Sheet, sheet_of
from sealbook.views.standings import MEANINGS

if TYPE_CHECKING:
    from sealbook.console.console import Console

ROWS = 50
"""Rows of a page, unless the address says otherwise."""

COLUMNS = 31
"""So many columns a table has where there are no scripts: the last ones."""

_LASTS = 60


def _gather(ask: Ask) -> Answer:
    selection, match = ask.selection(), ask.one("match") or ""
    [step] = words_of("step", [ask.one("step") or Step.DAY], Step)
    cells = words_of("cell", ask.many("cell"), Cell)
    number, size = ask.whole("page", 1), ask.whole("rows", ROWS, most=MOST_ROWS)
    found = _sheet(ask.console, selection).only(match, cells).page(step, number, size)
    more = {
        "steps": list(Step),
        "cells": list(Cell),
        "meanings": MEANINGS,
        "queries": sorted({query.name for query in ask.book.queries}),
        "total": found.total,
        "page_count": found.page_count,
        "not_good": _not_good,
        "cell_path": _cell_path,
        "shown": range(len(found.columns))[-COLUMNS:],
        # An action knows no other filters: it would be done to more than is shown.
        "acting_on": None if match or cells else f"/actions?{selection_query(selection)}",
    }
    command = command_of(
        "sealbook status grid",
        selection,
        step=None if step is Step.DAY else step,
        cell=cells,
        match=match or None,
        page=None if number == 1 else number,
        rows=size,
    )
    return Answer(found.to_dict(), command, more)


def _sheet(console: Console, selection: Selection) -> Sheet:
    """Return the sheet of what is chosen: all steps and pages of it are cut from one reading."""

    def gather() -> Answer:
        book = console.book
        return Answer(sheet_of(book.ledger, book.expectations(), selection), "")

    found: Sheet = console.gathered(f"sheet {selection}", gather, lasts=_LASTS).answer.content
    return found


def _not_good(counts: Mapping[str, int]) -> int:
    """Return how many of some partitions are not as they should be."""
    return sum(counts.values()) - sum(counts.get(each.value, 0) for each in GOOD)


def _cell_path(row: Mapping[str, str], column: Mapping[str, date], step: Step) -> str:
    """Return what a cell opens: its partition, or the days of a week, month or year."""
    if step is Step.DAY:
        return key_path(f"{row['source']}/{row['customer_id']}/{row['query_name']}/{column['first']}")
    names = {"source": row["source"], "customer": row["customer_id"], "query": row["query_name"]}
    return f"/?{urlencode({**names, 'since': column['first'], 'until': column['last']})}"


routes = page("/", "grid.html", _gather, lasts=_LASTS)
