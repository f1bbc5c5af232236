"""What the Google Ads source tells of the account tree below a manager, asked with the official client."""

from __future__ import annotations

import pytest

from sealbook.errors import Permanent, Transient
from sealbook.extract.source import Discovers, load_source
from sealbook.model.accounts import DiscoveredAccount
from tests.support.account_trees import ROOT, agency
from tests.support.google_ads import API_VERSION, Failure, GoogleAdsServer, google_ads_query


def accounts(server: GoogleAdsServer, root: str = ROOT) -> dict[str, DiscoveredAccount]:
    source = load_source("google_ads", {"endpoint": server.endpoint, "login_customer_id": ROOT})
    assert isinstance(source, Discovers)
    return {each.customer_id: each for each in source.accounts(root, [google_ads_query()])}


def test_the_whole_tree_is_told_of_with_managers_and_what_is_closed(
    google_ads_server: GoogleAdsServer,
) -> None:
    google_ads_server.answer = agency().answer
    found = accounts(google_ads_server)
    assert {each.customer_id: each.level for each in found.values()} == {
        ROOT: 0,
        "2000000001": 1,
        "2000000002": 1,
        "1000000001": 1,
        "3000000001": 2,
        "3000000002": 2,
        "3000000003": 2,
    }
    assert [each for each, account in found.items() if account.is_manager] == [ROOT, "1000000001"]
    assert [each for each, account in found.items() if not account.is_open] == ["2000000002", "3000000002"]
    assert found["3000000001"] == DiscoveredAccount(
        "3000000001", "bakery", level=2, time_zone="America/Los_Angeles", currency="USD"
    )
    assert found["3000000003"] == DiscoveredAccount(
        "3000000003",
        "bar",
        "suspended",
        is_hidden=True,
        level=2,
        time_zone="Europe/Berlin",
        currency="EUR",
        labels=("vip",),
    )
    assert found["2000000001"].labels == ("daily", "vip")


def test_it_costs_one_request_and_another_only_where_there_are_labels(
    google_ads_server: GoogleAdsServer,
) -> None:
    tree = agency()
    google_ads_server.answer = tree.answer
    accounts(google_ads_server)
    assert [request.customer_id for request in google_ads_server.requests] == [ROOT, ROOT]
    assert {request.metadata["login-customer-id"] for request in google_ads_server.requests} == {ROOT}
    for node, _ in tree.root.walk():
        node.labels = ()
    google_ads_server.requests.clear()
    accounts(google_ads_server)
    assert len(google_ads_server.requests) == 1


def test_a_manager_below_the_root_has_a_tree_of_its_own(google_ads_server: GoogleAdsServer) -> None:
    google_ads_server.answer = agency().answer
    found = accounts(google_ads_server, "1000000001")
    assert {each.customer_id: each.level for each in found.values()} == {
        "1000000001": 0,
        "3000000001": 1,
        "3000000002": 1,
        "3000000003": 1,
    }


def test_a_stream_that_breaks_off_is_no_answer_and_failures_are_classed(
    google_ads_server: GoogleAdsServer,
) -> None:
    tree = agency()
    google_ads_server.answer = tree.answer
    tree.breaks = Failure("UNAVAILABLE")
    with pytest.raises(Transient, match=f"the accounts below {ROOT}"):
        accounts(google_ads_server)
    with pytest.raises(Permanent, match="USER_PERMISSION_DENIED"):
        accounts(google_ads_server, "2000000001")


def test_the_newest_api_version_of_the_queries_is_spoken() -> None:
    with GoogleAdsServer(api_version=API_VERSION) as server:
        server.answer = agency().answer
        source = load_source("google_ads", {"endpoint": server.endpoint})
        assert isinstance(source, Discovers)
        queries = [google_ads_query(api_version="v25"), google_ads_query(api_version=API_VERSION)]
        assert len(list(source.accounts(ROOT, queries))) == 7
