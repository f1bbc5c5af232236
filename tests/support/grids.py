"""A book with a grid to look at: many customers, a few weeks, some of everything, written without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.partition_events import Stage
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.universe import Universe
from tests.support.status_cases import Case, Row, prepare, published_at, store

FIRST, DAYS = date(2026, 1, 1), 40
LAST = FIRST + timedelta(days=DAYS - 1)
CUSTOMERS = tuple(str(1_001 + number) for number in range(60))
QUERY = "campaign_daily"

_THEN = datetime(2026, 3, 1, tzinfo=UTC)
_LATER = datetime(2026, 3, 2, tzinfo=UTC)
FAILED = Row(None, None, _LATER, AttemptOutcome.FAILED, Stage.VALIDATE, Availability.NONE)
KEPT = Row(_THEN, "one", _LATER, AttemptOutcome.FAILED, Stage.EXTRACT, Availability.PUBLISHED)
BEHIND = Row(_THEN, "one", _THEN, AttemptOutcome.SUCCEEDED, None, Availability.BEHIND)
WITHDRAWN = Row(_THEN, "one", _LATER, AttemptOutcome.FAILED, Stage.VALIDATE, Availability.HIDDEN)


def key(customer: int, day: int, query: str = QUERY) -> PartitionKey:
    """Return a partition by numbers."""
    return PartitionKey("demo", CUSTOMERS[customer], query, FIRST + timedelta(days=day))


def rows() -> dict[PartitionKey, Row]:
    """Return what became of every partition: the first customers have something of each kind."""
    found = {
        key(customer, day): published_at(_THEN) for customer in range(len(CUSTOMERS)) for day in range(DAYS)
    }
    found |= {key(3, DAYS - 1): WITHDRAWN, key(3, DAYS - 2): KEPT, key(5, DAYS - 1): FAILED}
    found |= {key(7, DAYS - 3): BEHIND, key(8, 2): FAILED, key(59, 0): KEPT}
    del found[key(9, DAYS - 1)]  # missing
    return found


def write_grid_book(folder: Path, **settings: Any) -> None:
    """Write a book of sixty customers, a query and forty days; its ledger knows how they stand."""
    query = yaml.safe_load(demo_configuration())["queries"][QUERY]
    source = {
        "queries": "demo.yaml",
        "customers": list(CUSTOMERS),
        "first_day": str(FIRST),
        "last_day": str(LAST),
    }
    folder.mkdir(parents=True, exist_ok=True)
    book = {"ledger": "sqlite:///sealbook.db", "sources": {"demo": source}, **settings}
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    (folder / "demo.yaml").write_text(yaml.safe_dump({"source": "demo", "queries": {QUERY: query}}))
    with sealbook.open(folder) as opened:
        opened.catch_up()
        prepare(opened.ledger)
        put(opened.ledger, rows())


def put(ledger: Ledger, rows: dict[PartitionKey, Row]) -> None:
    """Let these be the rows, in place of any before."""
    store(ledger, Case(Expectations(Universe({}, {}), _LATER), rows))
