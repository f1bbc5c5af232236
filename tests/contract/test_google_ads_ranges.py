"""Ranges of days from a server that speaks the protocol: each day as a request for it alone would give it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError, Permanent
from sealbook.extract.allowance import Allowance
from sealbook.extract.extractor import Extractor
from sealbook.extract.ranges import Range, Ranges, singles
from sealbook.extract.results import Ending
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.source import Ranged, load_source
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.raw import RawStore
from tests.support.google_ads import (
    CUSTOMER_ID,
    DAY,
    Batch,
    Failure,
    GoogleAdsServer,
    google_ads_key,
    google_ads_query,
)
from tests.support.google_ads_days import DAILY, Days, DaysServer, clicks
from tests.support.runs import new_run_id

Make = Callable[..., Extractor]

KEYS = [google_ads_key(day=DAY + timedelta(days=number)) for number in range(40)]
ONCE = Allowance(once=True)
QUERY = google_ads_query(DAILY)
PAST_THE_HORIZON = Failure(
    "INVALID_ARGUMENT",
    [{"error_code": {"date_range_error": "REQUESTED_DATE_GRANULARITY_NOT_SUPPORTED"}, "message": "too old"}],
)


@pytest.fixture
def server() -> Iterator[DaysServer]:
    """A server that has rows for some days; of each third day none, and of another account more."""
    rows = {
        (CUSTOMER_ID, key.logical_date): clicks(*range(number % 7))
        for number, key in enumerate(KEYS)
        if number % 3
    }
    rows |= {("9999999999", key.logical_date): clicks(99) for key in KEYS}
    with DaysServer(Days(rows)) as started:
        yield started


@pytest.fixture
def make(server: DaysServer, tmp_path: Path) -> Make:
    """Return extractors of new runs that ask the server."""

    def made(query: Query = QUERY, **changes: Any) -> Extractor:
        return Extractor(
            run_id=new_run_id(),
            source_type="google_ads",
            queries={query.name: query},
            raw_url=str(tmp_path / "raw"),
            options={"endpoint": server.endpoint},
            retry=RetryPolicy(tries=2, base_seconds=0.0),
            **changes,
        )

    return made


def gathered(query: Query = QUERY, keys: list[PartitionKey] = KEYS) -> list[Range]:
    return Ranges(SourceSettings("google_ads", (CUSTOMER_ID,), {query.name: query}, {})).gather(keys)


def payloads(extractor: Extractor) -> dict[PartitionKey, bytes]:
    """Return what is sealed."""
    store = RawStore.open(extractor.raw_url)
    return {
        key: store.read(key, extractor.run_id).payload()
        for key in KEYS
        if store.is_sealed(key, extractor.run_id)
    }


@pytest.mark.parametrize("batch", [1, 5, 1000])
def test_a_range_gives_each_day_what_a_request_for_it_would(
    server: DaysServer, make: Make, batch: int
) -> None:
    server.days.batch = batch
    alone, together = make(), make()
    alone(singles(KEYS))
    assert len(server.requests) == 40
    results = together(gathered())
    assert len(server.requests) == 40 + 2
    assert {result.ending for result in results} == {Ending.SEALED}
    assert payloads(together) == payloads(alone)
    assert list(payloads(together)) == KEYS
    assert [len(payload.splitlines()) for payload in payloads(together).values()][:7] == [0, 0, 1, 0, 3, 4, 0]
    assert [result.requests for result in results] == [1] + [0] * 30 + [1] + [0] * 8


def test_rows_without_metrics_are_not_lost_where_the_day_is_not_selected(make: Make) -> None:
    """Google Ads leaves them out where a segment is selected: so none is added, and no range asked for."""
    query = google_ads_query(DAILY.replace("segments.date, ", ""))
    assert gathered(query) == singles(KEYS)
    extractor = make(query)
    extractor(gathered(query, KEYS[:2]))
    assert payloads(extractor)[KEYS[1]] == b'{"campaign_id":0,"metrics_clicks":0}\n'
    selected = make()
    selected(gathered(keys=KEYS[:2]))
    assert payloads(selected)[KEYS[1]] == b""


def test_a_stream_that_breaks_seals_no_day_of_its_range(server: DaysServer, make: Make) -> None:
    server.days.failures[KEYS[20].logical_date] = Failure("UNAVAILABLE")
    extractor = make(allowance=ONCE)
    results = extractor(gathered(keys=KEYS[:31]))
    assert {(result.ending, result.error_class) for result in results} == {(Ending.FAILED, "transient")}
    assert payloads(extractor) == {}
    assert len(server.requests) == sum(result.requests for result in results) == 1


def test_a_day_past_the_horizon_does_not_hold_up_its_neighbours(server: DaysServer, make: Make) -> None:
    server.days.failures[KEYS[1].logical_date] = PAST_THE_HORIZON
    extractor = make()
    results = extractor(gathered(keys=KEYS[:8]))
    assert [result.key for result in results if result.ending is Ending.FAILED] == [KEYS[1]]
    assert list(payloads(extractor)) == [KEYS[0], *KEYS[2:8]]


def test_an_account_that_is_disabled_is_asked_for_once(server: DaysServer, make: Make) -> None:
    error = {"error_code": {"authorization_error": "CUSTOMER_NOT_ENABLED"}, "message": "disabled"}
    server.days.failures[KEYS[1].logical_date] = Failure("PERMISSION_DENIED", [error])
    results = make()(gathered(keys=KEYS[:8]))
    assert {result.ending for result in results} == {Ending.FAILED}
    said = f"{KEYS[0]} … {KEYS[7].logical_date}: Google Ads answered PERMISSION_DENIED"
    assert str(results[3].error_message).startswith(said)
    assert len(server.requests) == 1


def ranged(server: GoogleAdsServer) -> Ranged:
    source = load_source("google_ads", {"endpoint": server.endpoint})
    assert isinstance(source, Ranged)
    return source


@pytest.mark.parametrize("day", [{}, {"date": "2026-03-01"}])
def test_a_row_of_another_day_is_refused(google_ads_server: GoogleAdsServer, day: dict[str, str]) -> None:
    google_ads_server.reply(CUSTOMER_ID, [Batch(["campaign.id"], [{"campaign": {"id": 1}, "segments": day}])])
    with pytest.raises(Permanent, match=r"campaign_daily/2026-01-01 … 2026-01-02: a row of"):
        list(ranged(google_ads_server).fetch_range(KEYS[:2], QUERY))


def test_a_text_for_one_day_is_not_asked_for_more(google_ads_server: GoogleAdsServer) -> None:
    with pytest.raises(ConfigError, match="campaign_daily can be asked for one day at a time only"):
        list(ranged(google_ads_server).fetch_range(KEYS[:2], google_ads_query()))
    assert google_ads_server.requests == []


def test_a_reader_that_stops_early_cancels_the_stream(server: DaysServer) -> None:
    server.days = Days({(CUSTOMER_ID, date(2026, 1, 1)): clicks(*range(1, 50_000))}, batch=500)
    stream = ranged(server).fetch_range(KEYS[:2], QUERY)
    assert isinstance(stream, Generator)
    next(stream)
    stream.close()
    assert server.cancelled.wait(timeout=60)
