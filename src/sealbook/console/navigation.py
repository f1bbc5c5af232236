"""The pages that every page links to, in the order in which they are needed."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A page of the navigation; the key takes a keyboard there."""

    path: str
    title: str


NAVIGATION = (
    Place("/", "Grid"),
    Place("/runs", "Runs"),
    Place("/backfills", "Backfills"),
    Place("/lanes", "Lanes"),
    Place("/budget", "Budget"),
    Place("/cuts", "Cuts"),
    Place("/contracts", "Contracts"),
    Place("/audit", "Audit"),
    Place("/alerts", "Alerts"),
    Place("/sql", "SQL"),
    Place("/actions", "Act"),
)
