"""Books of the demo source that are as large as is wanted, and what is done in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from sealbook.book import Book
from sealbook.config import RetentionSettings, Settings, SourceSettings, SparkSettings
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from tests.support.extraction import FIRST_DAY, demo_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = "campaign_daily"


def demo_book(folder: Path, ledger: str, store: str, *, customers: int, rows: int) -> Book:
    """Open a book with its ledger at a URL and its data in a store, for local Spark on two cores."""
    names = tuple(f"c{number}" for number in range(customers))
    return Book(
        Settings(
            root=folder,
            ledger=ledger,
            raw=f"{store}/raw",
            warehouse=f"{store}/warehouse",
            sources={"demo": SourceSettings("demo", names, demo_queries(), {"rows": rows})},
            spark=SparkSettings(master="local[2]"),
            retention=RetentionSettings(f"{store}/archive"),
        )
    )


def chosen(keys: Sequence[PartitionKey]) -> Selection:
    """Return what chooses these partitions, which are all customers on all days of them."""
    return Selection(
        source="demo",
        customers={key.customer_id for key in keys},
        queries=QUERY,
        since=FIRST_DAY,
        until=max(key.logical_date for key in keys),
    )


def count_rows(frame: DataFrame) -> int:
    """Scan a frame, and return how many rows it has."""
    [row] = frame.agg(F.count("*"), F.max("metrics_clicks")).collect()
    return int(row[0])


def check(found: int, expected: int) -> None:
    """Hold what came of some work against what should."""
    assert found == expected, f"{found}, not {expected}"
