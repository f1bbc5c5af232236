"""Files of a book for tests: a good one, and the same with one thing changed."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealbook.config import load_settings
from sealbook.errors import ConfigError

REMOVED = object()
"""The value that takes a field out."""

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

SETTINGS: dict[str, Any] = {
    "ledger": "sqlite:///sealbook.db",
    "raw": "raw",
    "warehouse": "warehouse",
    "sources": {
        "google_ads": {
            "queries": "config/google_apis.yaml",
            "customers": ["123-456-7890", "2345678901"],
            "options": {"page_size": 5},
            "limits": {"requests_per_second": 10, "requests_per_second_per_customer": 2, "threads": 8},
        }
    },
    "spark": {"master": "local[2]", "config": {"spark.driver.memory": "2g"}},
}

CATALOGUE: dict[str, Any] = {
    "source": "google_ads",
    "api_version": "v26",
    "queries": {
        "campaign_daily": {
            "text": "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}'",
            "schema_version": "1",
            "contracts": {
                "1": {
                    "columns": {
                        "campaign_id": {"type": "bigint", "required": True},
                        "segments_date": {"type": "date"},
                        "metrics_clicks": {"type": "double"},
                    },
                    "primary_key": ["campaign_id"],
                    "date_column": "segments_date",
                    "rules": [{"name": "clicks", "expression": "metrics_clicks >= 0", "max_share": 0.01}],
                    "allow_empty": False,
                    "strict": False,
                    "row_count": {"min": 1, "max": 9, "min_ratio": 0.5, "max_ratio": 2, "last": 3},
                }
            },
        }
    },
}


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy of a document with another value at a path such as `sources.demo.customers[1]`."""
    result = copy.deepcopy(document)
    place: Any = result
    *steps, last = (int(index) if index else name for name, index in _STEP.findall(path))
    for step in steps:
        place = place[step]
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    return result


def write_book(folder: Path, settings: object = SETTINGS, catalogue: object = CATALOGUE) -> Path:
    """Write the two files of a book, given as documents or as text; return the settings file."""
    file = folder / "sealbook.yaml"
    (folder / "config").mkdir(parents=True, exist_ok=True)
    for target, content in ((file, settings), (folder / "config" / "google_apis.yaml", catalogue)):
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        target.write_text(text, encoding="utf-8")
    return file


def refused(file: Path) -> ConfigError:
    """Return the error with which a configuration is refused, and see that nothing was written."""
    before = sorted(file.parent.rglob("*"))
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert sorted(file.parent.rglob("*")) == before
    return caught.value


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every file below a folder with its bytes, and every folder that is not empty."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.is_file() or any(path.iterdir())
    }
