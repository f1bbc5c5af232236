"""Pointers: which run of each partition is published, since when, and in which artifact (R-WH, R-CON)."""

from __future__ import annotations

from sealbook.clock import Clock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.pointers.conditions import PointerFilters
from sealbook.ledger.pointers.cuts import CutWrites
from sealbook.ledger.pointers.plan import PlanReads
from sealbook.ledger.pointers.published import PublishedReads
from sealbook.ledger.pointers.removals import RemovalWrites
from sealbook.ledger.pointers.writes import Announce, PointerWrites

__all__ = [
    "Announce",
    "CutWrites",
    "PlanReads",
    "PointerFilters",
    "PointerWrites",
    "Pointers",
    "PublishedReads",
    "RemovalWrites",
]


class Pointers(PublishedReads, PlanReads, PointerWrites, CutWrites, RemovalWrites):
    """All ports of the warehouse on one ledger; hand a worker only the port of its role.

    `announce` is called with what was done to pointers, in the transaction that does it.
    """

    def __init__(self, database: Database, clock: Clock, announce: Announce | None = None) -> None:
        PublishedReads.__init__(self, database)
        PlanReads.__init__(self, database)
        PointerWrites.__init__(self, database, clock, announce)
        CutWrites.__init__(self, database, clock, announce)
        RemovalWrites.__init__(self, database, clock)
