"""Cuts: versions of the warehouse that stay readable."""

from __future__ import annotations

from dataclasses import asdict

from sealbook.console.answers import Answer
from sealbook.console.listing import Column, Listing
from sealbook.console.page import Ask, page
from sealbook.views.encoding import plain

_CUTS = Listing(
    "Cuts",
    "sealbook warehouse cut list",
    [
        Column("Token", "token", "code"),
        Column("Version", "version", "number"),
        Column("Created (UTC)", "created_at", "time"),
        Column("Note", "note"),
    ],
    about="A read at a cut gives the same rows and columns for as long as it is kept.",
    nothing="There is no cut yet: `sealbook warehouse cut create` makes one.",
)


def _gather(ask: Ask) -> Answer:
    return _CUTS.answer(ask, [_as_dict(each) for each in ask.book.ledger.pointers.cuts()])


def _as_dict(cut: object) -> dict[str, object]:
    found = plain(cut)
    return found if isinstance(found, dict) else asdict(cut)  # type: ignore[call-overload]


routes = page("/cuts", "list.html", _gather)
