"""Small books of the demo source, for what needs a book that really runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from sealbook.extract.sources.demo import demo_configuration

DAYS = ("2026-01-01", "2026-01-02")
CUSTOMERS = ("1001", "1003")
REJECTED = "demo/1003/campaign_daily/2026-01-02"
GOOD = "demo/1001/campaign_daily/2026-01-01"


def write_demo_book(folder: Path, **settings: Any) -> None:
    """Write a book of two accounts, one query and two days, one of which is bad on purpose."""
    catalogue = yaml.safe_load(demo_configuration())
    query = {"campaign_daily": catalogue["queries"]["campaign_daily"]}
    fault = {
        "kind": "malformed",
        "customers": ["1003"],
        "queries": ["campaign_daily"],
        "dates": [DAYS[1]],
    }
    source = {
        "queries": "demo.yaml",
        "customers": list(CUSTOMERS),
        "first_day": DAYS[0],
        "last_day": DAYS[1],
        "options": {"rows": 20, "faults": [fault]},
    }
    book = {
        "ledger": "sqlite:///sealbook.db",
        "sources": {"demo": source},
        "spark": {"master": "local[2]"},
        **settings,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    (folder / "demo.yaml").write_text(yaml.safe_dump({"source": "demo", "queries": query}, sort_keys=False))


def restate(folder: Path) -> None:
    """Let the source of a demo book give other rows from now on."""
    file = folder / "sealbook.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["sources"]["demo"]["options"]["seed"] = 1
    file.write_text(yaml.safe_dump(settings))
