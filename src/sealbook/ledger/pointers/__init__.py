"""Pointers: which run of each partition is published, since when, and in which artifact (R-WH, R-CON)."""

from __future__ import annotations

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.pointers.consumers import ConsumerReader, ConsumerWriter
from sealbook.ledger.pointers.cuts import CutWriter
from sealbook.ledger.pointers.drifts import DriftReader
from sealbook.ledger.pointers.plan import PlanReader
from sealbook.ledger.pointers.published import PublishedReader
from sealbook.ledger.pointers.records import RecordReader
from sealbook.ledger.pointers.removals import RemovalWriter
from sealbook.ledger.pointers.writes import PointerWriter
from sealbook.ledger.work.port import Follower

__all__ = ["PointerReader", "Pointers", "PublishedReader"]


class PointerReader(PublishedReader, PlanReader, RecordReader, ConsumerReader, DriftReader):
    """What is published, and what a load would change of it. Reading never writes."""


class Pointers(PointerReader, PointerWriter, CutWriter, RemovalWriter, ConsumerWriter):
    """All ports of the warehouse on one ledger: of readers and consumers, loaders, cuts and clean-up."""

    def __init__(self, database: Database, clock: LedgerClock, follower: Follower) -> None:
        PointerReader.__init__(self, database)
        PointerWriter.__init__(self, database, clock, follower)
