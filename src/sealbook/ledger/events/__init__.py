"""Run events: an append-only log, the feed of all runs, and what is projected from it (section R-EVT)."""

from sealbook.ledger.events.lag import PROJECTOR_LAG_HIGH, Lag
from sealbook.ledger.events.port import AppendResult, Backlog, EventFeed, FeedEvent, RunStore, Watch
from sealbook.ledger.events.projector import Projection, Projector, Resyncing
from sealbook.ledger.events.projectors import Projectors
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.ledger.events.retention import QuietRun, RetiredRun
from sealbook.ledger.events.snapshots import ProjectedRun, RunSnapshots
from sealbook.ledger.events.store import SqlRunStore
from sealbook.ledger.events.watch import Polling

__all__ = [
    "PROJECTOR_LAG_HIGH",
    "AppendResult",
    "Backlog",
    "EventFeed",
    "FeedEvent",
    "Lag",
    "Polling",
    "ProjectedRun",
    "Projection",
    "Projector",
    "Projectors",
    "QuietRun",
    "Resyncing",
    "RetiredRun",
    "RunSnapshots",
    "RunStore",
    "RunStoreReader",
    "SqlRunStore",
    "Watch",
]
