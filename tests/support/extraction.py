"""A demo extraction for tests: its queries, its keys, and an extractor on a folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sealbook.config import Limits
from sealbook.config.catalogue import load_catalogue
from sealbook.extract.extractor import Extractor
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from tests.support.runs import new_run_id

FIRST_DAY = date(2026, 1, 1)


@cache
def demo_queries() -> Mapping[str, Query]:
    """Return the demo's own queries."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "demo.yaml"
        file.write_text(demo_configuration())
        return load_catalogue(file, "demo")


def demo_keys(customers: int, days: int, query_name: str = "campaign_daily") -> list[PartitionKey]:
    """Return the partitions of some customers, named c0, c1 and so on, on some days."""
    return [
        PartitionKey("demo", f"c{customer}", query_name, FIRST_DAY + timedelta(days=day))
        for customer in range(customers)
        for day in range(days)
    ]


def demo_extractor(folder: Path, *, threads: int = 4, **options: object) -> Extractor:
    """Return an extractor of a new run, whose retries do not wait."""
    return Extractor(
        run_id=new_run_id(),
        source_type="demo",
        queries=demo_queries(),
        raw_url=str(folder / "raw"),
        options={"rows": 5, **options},
        limits=Limits(threads=threads),
        retry=RetryPolicy(tries=3, base_seconds=0.0),
    )
