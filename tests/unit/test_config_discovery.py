"""`customers` that is a mapping: what a good one becomes, and what is refused, by its place."""

from __future__ import annotations

import pickle
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sealbook.book.sources import LiveSources, with_accounts
from sealbook.config import SourceSettings, check_selection, load_settings
from sealbook.errors import ConfigError
from sealbook.model.discovery import Override
from sealbook.model.selection import Selection
from tests.support.books import REMOVED, SETTINGS, changed, refused, write_book

CUSTOMERS = "sources.google_ads.customers"
GOOD: dict[str, Any] = {
    "discover": "123-456-7890",
    "include": ["234-567-8901", "3456789012"],
    "exclude": ["4567890123"],
    "labels": ["vip"],
    "backfill": "90d",
    "every": "6h",
    "override": [{"id": "234-567-8901", "time_zone": "Asia/Tokyo", "first_day": "2026-01-01"}],
}
DISCOVERED = changed(SETTINGS, CUSTOMERS, GOOD)


def source(folder: Path, settings: object = DISCOVERED) -> SourceSettings:
    return load_settings(write_book(folder, settings)).sources["google_ads"]


def test_every_field_arrives_and_ids_lose_their_hyphens(tmp_path: Path) -> None:
    settings = changed(DISCOVERED, "sources.google_ads.time_zone", "Europe/Berlin")
    settings = changed(settings, "sources.google_ads.first_day", "2025-01-01")
    found = source(tmp_path, settings)
    discovery = found.discovery
    assert discovery is not None
    assert (found.customers, dict(found.accounts), found.waits_for_accounts) == ((), {}, True)
    assert discovery.root == "1234567890"
    assert (discovery.include, discovery.exclude) == (
        frozenset({"2345678901", "3456789012"}),
        frozenset({"4567890123"}),
    )
    assert (discovery.labels, discovery.backfill, discovery.every) == (
        frozenset({"vip"}),
        timedelta(days=90),
        timedelta(hours=6),
    )
    assert discovery.overrides == {"2345678901": Override(ZoneInfo("Asia/Tokyo"), date(2026, 1, 1))}
    assert (discovery.usual.zone, discovery.usual.first_day) == (ZoneInfo("Europe/Berlin"), date(2025, 1, 1))


def test_little_needs_to_be_said(tmp_path: Path) -> None:
    discovery = source(tmp_path, changed(SETTINGS, CUSTOMERS, {"discover": 1234567890})).discovery
    assert discovery is not None
    assert (discovery.root, discovery.include, discovery.backfill, discovery.every) == (
        "1234567890",
        None,
        None,
        timedelta(days=1),
    )


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("discover", REMOVED, "the field is missing"),
        ("discover", "123", "customer_id '123' is not valid"),
        ("labels", "vip", "expected a list, got `str`"),
        ("include", [], "it includes nobody"),
        ("include[1]", "45-67", "customer_id '45-67' is not valid"),
        ("exclude[0]", "x", "customer_id 'x' is not valid"),
        ("include[0]", "4567890123", "customer 4567890123 is excluded too"),
        ("backfill", "90", "backfill '90' is not valid"),
        ("every", "10s", "that is too often"),
        ("every", "daily", "every 'daily' is not valid"),
        ("first_day", "2026-01-01", "there is no such field"),
        ("override[0].id", "1", "customer_id '1' is not valid"),
        ("override[0].time_zone", "Mars/Olympus", "there is no time zone 'Mars/Olympus'"),
        ("override[0].last_day", "2025-12-31", "the days of an account end before they begin"),
        ("override[0].name", "x", "there is no such field"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path: Path, field: str, value: object, says: str) -> None:
    error = refused(write_book(tmp_path, changed(DISCOVERED, f"{CUSTOMERS}.{field}", value)))
    place = field.removesuffix(".last_day").removesuffix(".id")
    assert str(error).startswith(f"{tmp_path}/sealbook.yaml: {CUSTOMERS}.{place}: {says}")


def test_an_override_stands_once(tmp_path: Path) -> None:
    twice = changed(DISCOVERED, f"{CUSTOMERS}.override", GOOD["override"] * 2)
    assert "override[1]: customer 2345678901 is listed twice" in str(refused(write_book(tmp_path, twice)))


def test_weights_of_accounts_that_are_not_known_yet_are_taken(tmp_path: Path) -> None:
    weighted = {**DISCOVERED, "control": {"sources": {"google_ads": {"weights": {"345-678-9012": 3}}}}}
    settings = load_settings(write_book(tmp_path, weighted))
    assert settings.control.weights == {("google_ads", "3456789012"): 3}
    wrong = {**DISCOVERED, "control": {"sources": {"google_ads": {"weights": {"34": 3}}}}}
    assert "customer_id '34' is not valid" in str(refused(write_book(tmp_path, wrong)))


def test_a_file_has_no_accounts_and_a_name_of_one_says_how_to_get_them(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path, DISCOVERED))
    check_selection(settings.sources, Selection(source="google_ads", queries="campaign_daily"))
    with pytest.raises(ConfigError, match="the accounts of google_ads are not known yet") as caught:
        check_selection(settings.sources, Selection(customers=["2345678901"]))
    assert "sealbook accounts refresh" in str(caught.value.remedy)


def test_live_sources_go_to_another_process_as_the_file_has_them(tmp_path: Path) -> None:
    settings = with_accounts(load_settings(write_book(tmp_path, DISCOVERED)), lambda: None)
    assert isinstance(settings.sources, LiveSources)
    there = pickle.loads(pickle.dumps(settings))
    assert type(there.sources) is dict
    assert there.sources["google_ads"].discovery == settings.sources["google_ads"].discovery
    listed = load_settings(write_book(tmp_path))
    assert with_accounts(listed, lambda: None) is listed
