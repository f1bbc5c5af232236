"""`sealbook accounts`, and everything else in a book whose accounts are discovered, as a user types it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import sealbook
from sealbook.book.sources import HELD_SECONDS, LiveSources
from sealbook.clock import utc_now
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model.selection import Selection
from tests.support.account_trees import ROOT, agency
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.cli import Ran, run
from tests.support.google_ads import Failure, GoogleAdsServer

SHOP = {"id": "shop", "time_zone": "Europe/Berlin", "currency": "EUR", "labels": ["vip"]}
BAR = {"id": "bar", "time_zone": "Asia/Tokyo"}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a book of a demo source that tells of some accounts."""

    def book(accounts: Iterable[Any] = (SHOP, BAR), **customers: Any) -> Path:
        source = {
            "queries": "demo.yaml",
            "customers": {"discover": "agency", "backfill": "3d", **customers},
            "options": {"rows": 2, "accounts": list(accounts)},
        }
        catalogue = yaml.safe_load(demo_configuration())
        catalogue["queries"] = {"campaign_daily": catalogue["queries"]["campaign_daily"]}
        settings = {"ledger": "sqlite:///sealbook.db", "sources": {"demo": source}}
        (tmp_path / "demo.yaml").write_text(yaml.safe_dump(catalogue))
        (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
        return tmp_path

    return book


def ask(book: Path, *arguments: str, code: int = 0) -> Ran:
    ran = run(*arguments, cwd=book)
    assert ran.code == code, ran.err
    return ran


def listed(book: Path) -> dict[str, dict[str, Any]]:
    return {each["customer_id"]: each for each in ask(book, "accounts", "--format", "json").json}


def test_before_the_first_refresh_commands_say_what_to_do(write: Write) -> None:
    book = write()
    for command in (
        ["status"],
        ["extract", "--day", "2026-01-01", "--yes"],
        ["coverage", "campaign_daily"],
        ["state", "backfill", "--day", "2026-01-01", "--reason", "x"],
        ["state", "pause", "--source", "demo", "--customer", "shop", "--reason", "x"],
    ):
        ran = ask(book, *command, code=2)
        assert "the accounts of demo are not known yet" in ran.said, command
        assert "`sealbook accounts refresh`" in ran.said, command
    assert "was not asked for its accounts yet" in ask(book, "accounts").said
    assert "they were not asked for yet" in ask(book, "doctor", "--quick", code=0).out


def test_accounts_are_found_listed_and_expected(write: Write) -> None:
    book = write()
    [done] = ask(book, "accounts", "refresh", "--format", "json").json
    assert (done["source"], done["accounts"], done["found"]) == ("demo", 3, ["agency", "bar", "shop"])
    found = listed(book)
    assert {name: each["why_not"] for name, each in found.items()} == {
        "agency": "a manager",
        "bar": None,
        "shop": None,
    }
    shop = found["shop"]
    assert (shop["time_zone"], shop["currency"], shop["labels"]) == ("Europe/Berlin", "EUR", ["vip"])
    first = date.fromisoformat(shop["first_day"])
    assert utc_now().date() - first in (timedelta(days=3), timedelta(days=2))
    lines = ask(book, "status", "--missing", "--format", "json").json
    assert {each["customer_id"] for each in lines} == {"shop", "bar"}, "all that is due of both is missing"
    assert "no customer x is configured" in ask(book, "status", "--customer", "x", code=2).said
    early = f"{first - timedelta(days=1)}"
    assert (
        "no account that is chosen has a day"
        in ask(book, "extract", "--day", early, "--customer", "shop", code=2).said
    )


def test_settings_choose_among_accounts_without_asking_again(write: Write) -> None:
    ask(write(), "accounts", "refresh")
    assert [name for name, each in listed(write(exclude=["bar"])).items() if each["expected"]] == ["shop"]
    assert [name for name, each in listed(write(include=["bar"])).items() if each["expected"]] == ["bar"]
    assert [name for name, each in listed(write(labels=["vip"])).items() if each["expected"]] == ["shop"]
    book = write(override=[{"id": "bar", "first_day": "2025-01-01", "last_day": "2025-01-02"}])
    lines = ask(book, "status", "--missing", "--customer", "bar", "--format", "json").json
    assert [each["logical_date"] for each in lines] == ["2025-01-01", "2025-01-02"]
    gone = ask(write(include=["bar", "nobody"]), "doctor", "--quick").out
    assert "nobody: it is included, and demo tells of no such account" in gone


def test_what_vanishes_is_reported_and_stays_expected_until_it_is_forgotten(write: Write) -> None:
    ask(write(), "accounts", "refresh")
    book = write([BAR])
    said = ask(book, "accounts", "refresh").said
    assert "demo tells no more of shop: they stay expected" in said
    shop = listed(book)["shop"]
    assert (shop["presence"], shop["expected"], shop["last_day"]) == ("vanished", True, None)
    assert "tells of it no more" in shop["problem"]
    alerts = ask(book, "status", "alerts", "--format", "json", code=3).json
    assert ("account_missing", "demo/shop") in [(each["kind"], each["subject"]) for each in alerts]
    assert "shop: demo tells of it no more below agency" in ask(book, "doctor", "--quick").out
    assert "has not vanished" in ask(book, "accounts", "forget", "bar", "--reason", "x", code=1).said
    ask(book, "accounts", "forget", "shop", "--reason", "the client left", "--actor", "ann")
    shop = listed(book)["shop"]
    assert (shop["expected"], shop["why_not"], shop["problem"]) == (False, "forgotten", None)
    kinds = {each["kind"] for each in ask(book, "status", "alerts", "--format", "json", code=0).json}
    assert "account_missing" not in kinds
    history = ask(book, "accounts", "list", "--history", "--format", "json").json
    assert [
        (each["what"], each["after"], each["actor"]) for each in history if each["customer_id"] == "shop"
    ] == [("found", None, None), ("vanished", None, None), ("forgotten", "the client left", "ann")]


def test_another_time_zone_says_from_which_day_on_it_holds(write: Write) -> None:
    ask(write(), "accounts", "refresh")
    book = write([{**SHOP, "time_zone": "Pacific/Auckland"}, {**BAR, "time_zone": "Mars/Olympus"}])
    ask(book, "accounts", "refresh")
    history = ask(book, "accounts", "list", "--history", "--format", "json").json
    zones = {each["customer_id"]: each for each in history if each["what"] == "time_zone"}
    assert (zones["shop"]["before"], zones["shop"]["after"]) == ("Europe/Berlin", "Pacific/Auckland")
    assert date.fromisoformat(zones["shop"]["from_day"]) - utc_now().date() <= timedelta(days=1)
    assert zones["bar"]["from_day"] is None
    bar = listed(book)["bar"]
    assert "its time zone 'Mars/Olympus' is not known here" in bar["problem"]
    assert "its days stay those of Asia/Tokyo" in bar["problem"]
    assert bar["expected"]
    assert listed(book)["shop"]["problem"] is None, "the others go on"


def test_a_source_that_fails_changes_nothing_and_one_of_several_is_done_in_part(tmp_path: Path) -> None:
    tree = agency()
    with GoogleAdsServer() as server:
        server.answer = tree.answer
        options = {"endpoint": server.endpoint, "login_customer_id": ROOT}
        settings = changed(SETTINGS, "sources.google_ads.options", options)
        settings = changed(settings, "sources.google_ads.customers", {"discover": "100-000-0000"})
        book = write_book(tmp_path, settings, CATALOGUE).parent
        [done] = ask(book, "accounts", "refresh", "--format", "json").json
        assert done["accounts"] == 7
        before = listed(book)
        assert [name for name, each in before.items() if each["expected"]] == [
            "2000000001",
            "3000000001",
            "3000000003",
        ]
        tree.breaks = Failure("PERMISSION_DENIED")
        assert "PERMISSION_DENIED" in ask(book, "accounts", "refresh", code=2).said
        assert listed(book) == before
        alerts = ask(book, "status", "alerts", "--format", "json", code=3).json
        assert ("accounts_not_refreshed", "google_ads") in [
            (each["kind"], each["subject"]) for each in alerts
        ]


def test_listed_customers_are_not_asked_for(tmp_path: Path) -> None:
    book = write_book(tmp_path).parent
    assert "no source that is chosen discovers its accounts" in ask(book, "accounts", code=2).said
    assert "no source demo is configured" in ask(book, "accounts", "refresh", "--source", "demo", code=2).said


def test_a_book_that_stays_open_takes_up_new_accounts(write: Write) -> None:
    """By itself some time after another has asked, and at once after its own refresh."""
    ask(write([SHOP]), "accounts", "refresh")
    now = [0.0]
    with sealbook.open(write([SHOP, BAR])) as book:
        sources = book.settings.sources
        assert isinstance(sources, LiveSources)
        sources._clock = lambda: now[0]
        assert set(book.universe().accounts["demo"]) == {"shop"}
        ask(write([SHOP, BAR]), "accounts", "refresh")
        assert set(book.universe().accounts["demo"]) == {"shop"}
        now[0] += HELD_SECONDS
        assert set(book.universe().accounts["demo"]) == {"shop", "bar"}
        with book.reader as reader:
            assert set(reader.universe().accounts["demo"]) == {"shop", "bar"}
            reader.check(Selection(customers=["bar"]))
    with sealbook.open(write([SHOP, BAR, {"id": "new"}])) as book:
        assert set(book.universe().accounts["demo"]) == {"shop", "bar"}
        book.accounts.refresh("demo")
        assert set(book.universe().accounts["demo"]) == {"shop", "bar", "new"}
