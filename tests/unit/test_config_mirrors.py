"""Mirrors in the settings: of which queries, where, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sealbook.config import MirrorFormat, load_settings
from sealbook.model.universe import AssetName
from tests.support.books import SETTINGS, refused, write_book

DELTA: dict[str, Any] = {"format": "delta", "location": "lake"}
ICEBERG: dict[str, Any] = {"format": "iceberg", "location": "ice"}


def book(folder: Path, **mirrors: dict[str, Any]) -> Path:
    return write_book(folder, {**SETTINGS, "mirrors": mirrors})


@pytest.mark.parametrize(
    ("mirrors", "field", "says"),
    [
        ({"lake": {"format": "delta"}}, "mirrors.lake.location", "the field is missing"),
        ({"lake": DELTA | {"format": "hudi"}}, "mirrors.lake.format", "'hudi' is not one of delta, iceberg"),
        ({"lake": DELTA | {"place": "x"}}, "mirrors.lake.place", "there is no such field"),
        ({"Lake": DELTA}, "mirrors.Lake", "mirror 'Lake'"),
        ({"l" * 57: DELTA}, f"mirrors.{'l' * 57}", "consumer"),
        ({"lake": DELTA | {"queries": []}}, "mirrors.lake.queries", "expected a list of length >= 1"),
        ({"lake": DELTA | {"queries": ["none"]}}, "mirrors.lake.queries[0]", "no query none is configured"),
        ({"lake": DELTA | {"catalog": {}}}, "mirrors.lake.catalog", "only Iceberg has a catalogue"),
        ({"lake": DELTA | {"location": "raw"}}, "mirrors.lake.location", "it is in the same place as raw"),
        (
            {"lake": DELTA | {"location": "warehouse/lake"}},
            "mirrors.lake.location",
            "it is in the same place as warehouse",
        ),
        (
            {"ice": ICEBERG | {"location": "warehouse"}},
            "mirrors.ice.location",
            "it is in the same place as warehouse",
        ),
        ({"lake": DELTA, "other": DELTA}, "mirrors.other.location", "mirror lake is there"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, mirrors: dict[str, dict[str, Any]], field: str, says: str
) -> None:
    error = str(refused(book(tmp_path, **mirrors)))
    assert error.startswith(f"{tmp_path}/sealbook.yaml: {field}: {says}"), error


def test_what_a_mirror_is_of_and_where(tmp_path: Path) -> None:
    settings = load_settings(book(tmp_path, lake=DELTA | {"location": "warehouse"}, ice=ICEBERG))
    every = tuple(
        AssetName(source.name, name) for source in settings.sources.values() for name in source.queries
    )
    lake, ice = settings.mirrors["lake"], settings.mirrors["ice"]
    assert (lake.format, lake.location, lake.queries) == (MirrorFormat.DELTA, settings.warehouse, every)
    assert (ice.format, ice.location, dict(ice.catalog)) == (MirrorFormat.ICEBERG, f"{tmp_path}/ice", {})
    source, name = every[0]
    chosen = DELTA | {"queries": [f"{source}/{name}", name]}
    assert load_settings(book(tmp_path, lake=chosen)).mirrors["lake"].queries == (every[0],)


def test_a_password_of_a_catalogue_is_not_shown(tmp_path: Path) -> None:
    mirror = ICEBERG | {"catalog": {"type": "sql", "uri": "postgresql://u:hunter2@h/d"}}
    assert "hunter2" not in repr(load_settings(book(tmp_path, ice=mirror)))
