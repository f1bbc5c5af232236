"""A book over the million partitions of `status_load`, for a console to show."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from bench.status_load import FIRST, QUERIES, customers
from sealbook.extract.sources.demo import demo_configuration

DAYS = 365
LAST = FIRST + timedelta(days=DAYS - 1)
FRESHNESS = {"due": ["6h", "3d", "7d"], "max_lag": "12h"}


def write_book(folder: Path, url: str) -> None:
    """Write the settings of a book whose ledger is at a URL; the last query is made of the first."""
    query: dict[str, Any] = yaml.safe_load(demo_configuration())["queries"]["campaign_daily"]
    queries = {name: {**query, "freshness": FRESHNESS} for name in QUERIES}
    queries[QUERIES[3]]["upstreams"] = [{"query": QUERIES[0]}]
    source = {
        "queries": "demo.yaml",
        "customers": customers(),
        "first_day": str(FIRST),
        "last_day": str(LAST),
    }
    folder.mkdir(parents=True, exist_ok=True)
    book = {"ledger": url, "sources": {"demo": source}}
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    (folder / "demo.yaml").write_text(yaml.safe_dump({"source": "demo", "queries": queries}, sort_keys=False))
