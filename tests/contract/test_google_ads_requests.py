"""What the Google Ads source asks for: the query with its day, the API version, the login customer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from sealbook.config.catalogue import load_catalogue
from sealbook.errors import ConfigError
from sealbook.extract.limits import RequestLimiter
from sealbook.extract.source import load_source
from sealbook.extract.sources.demo import demo_configuration
from sealbook.extract.sources.google_ads import bind_logical_date
from tests.support.google_ads import (
    API_VERSION,
    CUSTOMER_ID,
    Batch,
    GoogleAdsServer,
    google_ads_key,
    google_ads_query,
)

ONE_ROW = [Batch(["campaign.id"], [{"campaign": {"id": 1}}])]


def test_the_day_is_bound_into_the_text_and_the_customer_is_that_of_the_key(
    google_ads_server: GoogleAdsServer,
) -> None:
    source = load_source("google_ads", {"endpoint": google_ads_server.endpoint})
    assert list(source.fetch(google_ads_key("9876543210", date(2026, 3, 9)), google_ads_query())) == []
    (request,) = google_ads_server.requests
    assert request.customer_id == "9876543210"
    assert request.query == "SELECT campaign.id FROM campaign WHERE segments.date = '2026-03-09'"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("x = '{logical_date}'", "x = '2026-01-01'"),
        ("BETWEEN '{logical_date}' AND '{logical_date}'", "BETWEEN '2026-01-01' AND '2026-01-01'"),
        (
            "name = '{brand}' AND d = '{logical_date}' AND x = '{}{0}%s'",
            "name = '{brand}' AND d = '2026-01-01' AND x = '{}{0}%s'",
        ),
    ],
)
def test_only_the_placeholder_is_replaced_and_other_braces_stand(text: str, bound: str) -> None:
    assert bind_logical_date(google_ads_query(text), date(2026, 1, 1)) == bound


def test_a_text_without_a_place_for_the_day_is_refused_before_any_request(
    google_ads_server: GoogleAdsServer,
) -> None:
    source = load_source("google_ads", {"endpoint": google_ads_server.endpoint})
    query = google_ads_query("SELECT campaign.id FROM campaign WHERE segments.date DURING LAST_7_DAYS")
    with pytest.raises(ConfigError, match="campaign_daily"):
        list(source.fetch(google_ads_key(), query))
    assert google_ads_server.requests == []


@pytest.mark.parametrize("api_version", ["v1", "26", "v26.1", ""])
def test_an_api_version_that_the_client_does_not_have_is_refused_with_those_it_has(api_version: str) -> None:
    source = load_source("google_ads", {"endpoint": "127.0.0.1:1"})
    with pytest.raises(ConfigError, match=rf"api_version '{api_version}'.* has v.*{API_VERSION}"):
        list(source.fetch(google_ads_key(), google_ads_query(api_version=api_version)))


@pytest.mark.parametrize("api_version", ["v25", "v26"])
def test_the_api_version_of_the_query_is_spoken(api_version: str) -> None:
    with GoogleAdsServer(default=ONE_ROW, api_version=api_version) as server:
        source = load_source("google_ads", {"endpoint": server.endpoint})
        assert list(source.fetch(google_ads_key(), google_ads_query(api_version=api_version))) == [
            {"campaign_id": 1}
        ]


def test_a_query_without_an_api_version_is_refused_with_those_that_the_client_has() -> None:
    source = load_source("google_ads", {"endpoint": "127.0.0.1:1"})
    with pytest.raises(ConfigError, match=rf"campaign_daily .* no api_version.* has v.*{API_VERSION}"):
        list(source.fetch(google_ads_key(), google_ads_query(api_version=None)))


@pytest.mark.parametrize("written", ["1112223333", "111-222-3333"])
def test_the_login_customer_goes_along_in_canonical_form(
    google_ads_server: GoogleAdsServer, written: str
) -> None:
    options = {"endpoint": google_ads_server.endpoint, "login_customer_id": written}
    list(load_source("google_ads", options).fetch(google_ads_key(), google_ads_query()))
    assert google_ads_server.requests[0].metadata["login-customer-id"] == "1112223333"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"login_customer_id": "12345"}, "login_customer_id '12345'"),
        ({"login_customer_id": 1112223333}, "google_ads: login_customer_id"),
        ({"timeout_seconds": 0}, "google_ads: timeout_seconds"),
        ({"developer_token": "hunter2"}, "developer_token"),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_with_its_path_and_no_secret(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_source("google_ads", options)
    assert "hunter2" not in f"{caught.value!r} {caught.value.remedy}"


def test_many_threads_share_a_source_and_each_gets_its_own_rows(google_ads_server: GoogleAdsServer) -> None:
    customers = [str(1_000_000_000 + number) for number in range(64)]
    for number, customer_id in enumerate(customers):
        rows = [{"campaign": {"id": number}}] * (number + 1)
        google_ads_server.reply(customer_id, [Batch(["campaign.id"], rows)])
    source = load_source("google_ads", {"endpoint": google_ads_server.endpoint})
    limiter = RequestLimiter(requests_per_second=10_000)

    def fetch(customer_id: str) -> list[object]:
        limiter.acquire(customer_id)
        return list(source.fetch(google_ads_key(customer_id), google_ads_query()))

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(fetch, customers))
    assert found == [[{"campaign_id": number}] * (number + 1) for number in range(64)]
    assert sorted(request.customer_id for request in google_ads_server.requests) == customers


def test_the_demo_queries_are_real_ones_and_give_the_columns_of_their_contracts(
    google_ads_server: GoogleAdsServer, tmp_path: Path
) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(demo_configuration().replace("source: demo", "source: google_ads"), "utf-8")
    source = load_source("google_ads", {"endpoint": google_ads_server.endpoint})
    for query in load_catalogue(file, "google_ads").values():
        selected = query.text.removeprefix("SELECT").partition("FROM")[0]
        mask = [field.strip() for field in selected.split(",")]
        google_ads_server.reply(CUSTOMER_ID, [Batch(mask, [{"campaign": {"id": 1}}])])
        (row,) = source.fetch(replace(google_ads_key(), query_name=query.name), query)
        assert set(row) == {column.name for column in query.contracts[query.schema_version].columns}
