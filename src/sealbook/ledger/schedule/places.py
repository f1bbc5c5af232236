"""Rows of open work by their place in the table, within one transaction: `ctid` on PostgreSQL, else `rowid`.

A place may have another row in it by then: whoever writes checks once more what is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sealbook.ledger.db.types import json_text

PLACE = {"postgresql": "CAST(work.ctid AS text)", "sqlite": "work.rowid"}
"""A row's place, by database."""

AT_PLACES = {
    "postgresql": "work.ctid = ANY(CAST(:places AS tid[]))",
    "sqlite": "work.rowid IN (SELECT value FROM json_each(:places))",
}
"""Whether a row is at one of the places of the parameter `places`."""


def encode_places(dialect: str, places: Sequence[object]) -> dict[str, str]:
    """Return the parameter that has these places."""
    if dialect == "postgresql":
        return {
            "places": "{" + ",".join(f'"{place}"' for place in places) + "}"
        }  # ten times as quick as a list
    return {"places": json_text(places)}
