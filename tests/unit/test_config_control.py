"""`control` in sealbook.yaml: the policy it makes, and what is wrong in it by file, field and line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import sealbook
from sealbook.config import ControlSettings, load_settings
from sealbook.model.retry import Jitter, Retries, RetryPolicies
from sealbook.model.work import Lane
from tests.support.books import SETTINGS, changed, refused, write_book
from tests.support.ledger import KEY, reject

SOURCE = "google_ads"
[QUERY] = ["campaign_daily"]
CUSTOMER = str(SETTINGS["sources"][SOURCE]["customers"][0]).replace("-", "")


def control(folder: Path, section: object) -> ControlSettings:
    return load_settings(write_book(folder, changed(SETTINGS, "control", section))).control


def test_without_a_section_the_defaults_hold(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path)).control
    assert settings == ControlSettings()
    assert settings.retries.of(SOURCE, QUERY) == Retries()


def test_a_whole_section(tmp_path: Path) -> None:
    section = {
        "shares": {"fresh": 60, "backfill": 5},
        "fresh_for": "7d",
        "lease": "5m",
        "retries": {"backoff": ["1m", "2h"], "jitter": "full"},
        "sources": {
            SOURCE: {
                "requests_per_day": 15_000,
                "weights": {CUSTOMER: 3},
                "retries": {"max_attempts": 5},
                "queries": {QUERY: {"max_age": "90d", "jitter": "none"}},
            }
        },
    }
    default = Retries((timedelta(minutes=1), timedelta(hours=2)), Jitter.FULL)
    of_source = Retries(default.backoff, Jitter.FULL, max_attempts=5)
    of_query = Retries(default.backoff, Jitter.NONE, max_attempts=5, max_age=timedelta(days=90))
    assert control(tmp_path, section) == ControlSettings(
        shares={Lane.FRESH: 60, Lane.RETRY: 15, Lane.REFRESH: 30, Lane.BACKFILL: 5},
        fresh_for=timedelta(days=7),
        lease=timedelta(minutes=5),
        retries=RetryPolicies(default, {SOURCE: of_source}, {(SOURCE, QUERY): of_query}),
        weights={(SOURCE, CUSTOMER): 3},
        requests_per_day={SOURCE: 15_000},
    )


def test_a_customer_may_be_named_with_its_hyphens(tmp_path: Path) -> None:
    hyphened = f"{CUSTOMER[:3]}-{CUSTOMER[3:6]}-{CUSTOMER[6:]}"
    settings = control(tmp_path, {"sources": {SOURCE: {"weights": {hyphened: 2}}}})
    assert settings.weights == {(SOURCE, CUSTOMER): 2}


IN_SOURCE = f"sources.{SOURCE}"
FIELDS: list[tuple[str, object, str, str]] = [
    ("shares.fresh", 0, "shares.fresh", "expected `int` >= 1"),
    ("shares.other", 5, "shares.other", "there is no such field"),
    ("fresh_for", "soon", "fresh_for", "a number of days, hours, minutes or seconds"),
    ("lease", "0m", "lease", "a lease lasts at least a minute"),
    ("lease", 5, "lease", "expected `str`"),
    ("retries.backoff", [], "retries.backoff", "length >= 1"),
    ("retries.backoff", ["5m", "x"], "retries.backoff[1]", "a number of days, hours, minutes or seconds"),
    ("retries.backoff", ["0m"], "retries.backoff", "each above zero"),
    ("retries.jitter", "some", "retries.jitter", "'some' is not one of full, equal, none"),
    ("retries.max_attempts", 0, "retries.max_attempts", "expected `int` >= 1"),
    ("retries.max_age", "0d", "retries.max_age", "a span above zero"),
    ("sources.other", {}, "sources.other", "no source other is configured"),
    (f"{IN_SOURCE}.requests_per_day", 0, f"{IN_SOURCE}.requests_per_day", "expected `int` >= 1"),
    (f"{IN_SOURCE}.limit", 1, f"{IN_SOURCE}.limit", "there is no such field"),
    (f"{IN_SOURCE}.weights", {"999": 2}, f"{IN_SOURCE}.weights.999", "no customer 999 is configured"),
    (f"{IN_SOURCE}.weights", {CUSTOMER: 0}, f"{IN_SOURCE}.weights.{CUSTOMER}", "expected `int` >= 1"),
    (f"{IN_SOURCE}.queries", {"other": {}}, f"{IN_SOURCE}.queries.other", "no query other is configured"),
    (f"{IN_SOURCE}.queries", {QUERY: {"tries": 1}}, f"{IN_SOURCE}.queries.{QUERY}.tries", "no such field"),
]


@pytest.mark.parametrize(("path", "value", "named", "problem"), FIELDS)
def test_what_is_wrong_is_named(tmp_path: Path, path: str, value: object, named: str, problem: str) -> None:
    section: dict[str, object] = {}
    *outer, last = path.split(".")
    inner = section
    for step in outer:
        inner = inner.setdefault(step, {})  # type: ignore[assignment]
    inner[last] = value
    error = refused(write_book(tmp_path, changed(SETTINGS, "control", section)))
    assert f"control.{named}: " in str(error)
    assert problem in str(error)


def test_a_book_retries_by_its_own_policy(tmp_path: Path) -> None:
    """R-CTL-2: what a verdict leaves to be done follows from the configured backoff."""
    document = SETTINGS | {"control": {"retries": {"backoff": ["7d"], "jitter": "none"}}}
    with sealbook.open(write_book(tmp_path, document)) as book:
        [state] = book.ledger.judge([reject()])
        waiting = book.ledger.reader.schedule.work(KEY)
    assert waiting is not None
    assert state.updated_at is not None
    assert waiting.work.ready_at == state.updated_at + timedelta(days=7)
