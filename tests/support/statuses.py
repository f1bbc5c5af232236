"""A book whose partitions are due up to yesterday, at which nobody has been at work, on any ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import PartitionKey, Verdict
from tests.support.ledger import run_id
from tests.support.pointers import load

QUERIES = ("ad_group_daily", "campaign_daily", "device_daily")


def yesterday() -> date:
    """Return the last day that is over."""
    return datetime.now(UTC).date() - timedelta(days=1)


def days(count: int) -> list[date]:
    """Return the last days that are over, the first of them first."""
    return [yesterday() - timedelta(days=number) for number in reversed(range(count))]


def write_status_book(
    folder: Path,
    ledger_url: str,
    *,
    customers: Iterable[str] = ("a", "b", "c"),
    first_day: date | None = None,
    freshness: Mapping[str, Any] | None = None,
    **others: Any,
) -> Path:
    """Write the files of a book and return its folder."""
    source: dict[str, Any] = {"queries": "demo.yaml", "customers": list(customers)}
    if first_day is not None:
        source["first_day"] = first_day.isoformat()
    if freshness is not None:
        source["freshness"] = dict(freshness)
    settings = {"ledger": ledger_url, "sources": {"demo": source}, **others}
    (folder / "demo.yaml").write_text(demo_configuration())
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    return folder


def key(customer: str, day: date, query: str = "campaign_daily") -> PartitionKey:
    """Return a key of the book."""
    return PartitionKey("demo", customer, query, day)


def judge(folder: Path, verdicts: Iterable[Verdict], *, publish: bool = True) -> None:
    """Judge runs of a book, and publish what is accepted."""
    with sealbook.open(folder) as book:
        book.ledger.judge(verdicts)
        if publish:
            load(book.ledger)
        book.catch_up()


def accepted(key: PartitionKey, run: int = 1, again: str | None = None) -> Verdict:
    """Accept a run."""
    return Verdict.accept(
        key, run_id(run), schema_version="1", record_count=10, validator_version="v", revalidation_id=again
    )


def rejected(key: PartitionKey, run: int = 1, again: str | None = None) -> Verdict:
    """Reject a run."""
    return Verdict.reject(key, run_id(run), error_message="bad", validator_version="v", revalidation_id=again)
