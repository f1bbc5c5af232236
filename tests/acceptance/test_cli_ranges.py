"""`sealbook extract` from a source that takes several days in one request, as a user types it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.cli import Ran, run
from tests.support.google_ads import Failure
from tests.support.google_ads_days import DAILY, Days, DaysServer, clicks

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

ACCOUNTS = ("1234567890", "2345678901")
DAYS = [date(2026, 1, 1) + timedelta(days=number) for number in range(10)]
CHOSEN = ("--since", "2026-01-01", "--until", "2026-01-10", "--format", "json")


@pytest.fixture
def server() -> Iterator[DaysServer]:
    """A server that has ten days of two accounts."""
    rows = {(account, day): clicks(1, 2, 3) for account in ACCOUNTS for day in DAYS}
    with DaysServer(Days(rows)) as started:
        yield started


def write(folder: Path, server: DaysServer, **settings: Any) -> Path:
    document = changed(SETTINGS, "sources.google_ads.options", {"endpoint": server.endpoint})
    document["sources"]["google_ads"] |= {"limits": {}, **settings}
    write_book(folder, document, changed(CATALOGUE, "queries.campaign_daily.text", DAILY))
    return folder


def extract(book: Path, *arguments: str) -> Ran:
    return run("extract", *CHOSEN, *arguments, cwd=book)


def test_ten_days_of_an_account_are_one_request_and_ten_partitions(
    tmp_path: Path, server: DaysServer
) -> None:
    """Those that are sealed are not asked for again; what lacks in the middle of them is one range."""
    book = write(tmp_path, server)
    ran = extract(book)
    assert ran.code == 0, ran.err
    assert [(row["ending"], row["record_count"]) for row in ran.json] == [("sealed", 3)] * 20
    assert sorted(request.customer_id for request in server.requests) == list(ACCOUNTS)
    [run_id] = {row["run_id"] for row in ran.json}
    for day in ("2026-01-04", "2026-01-05"):
        for seal in (book / "raw").rglob(f"logical_date={day}/*/metadata.json"):
            seal.unlink()
    again = extract(book, "--run-id", run_id)
    assert sorted(row["ending"] for row in again.json) == ["sealed"] * 4 + ["skipped"] * 16
    assert len(server.requests) == 4
    assert all("BETWEEN '2026-01-04' AND '2026-01-05'" in each.query for each in server.requests[2:])


def test_a_bad_day_fails_alone(tmp_path: Path, server: DaysServer) -> None:
    server.days.failures[DAYS[3]] = Failure("INVALID_ARGUMENT")
    ran = extract(write(tmp_path, server))
    assert ran.code == 3
    assert {row["logical_date"] for row in ran.json if row["ending"] == "failed"} == {"2026-01-04"}
    assert sum(row["ending"] == "sealed" for row in ran.json) == 18


def test_the_settings_can_have_it_day_by_day(tmp_path: Path, server: DaysServer) -> None:
    assert extract(write(tmp_path, server, days_per_request=1), "--customer", ACCOUNTS[0]).code == 0
    assert len(server.requests) == 10
