"""Rows of Google Ads, over gRPC from a local server: every type of field becomes a flat column."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec
import pytest

from sealbook.errors import Permanent
from sealbook.extract.source import load_source
from tests.support.google_ads import (
    API_VERSION,
    CUSTOMER_ID,
    Batch,
    GoogleAdsServer,
    Reply,
    google_ads_key,
    google_ads_query,
)

# path in the field mask, the row as the server sends it, the value of the column
FIELDS: list[tuple[str, dict[str, Any], Any]] = [
    ("campaign.id", {"campaign": {"id": 2**63 - 1}}, 2**63 - 1),
    ("account_budget.amount_served_micros", {"account_budget": {"amount_served_micros": -5}}, -5),
    (
        "ad_group_criterion.quality_info.quality_score",
        {"ad_group_criterion": {"quality_info": {"quality_score": 7}}},
        7,
    ),
    (
        "conversion_value_rule.itinerary_condition.travel_length.min_nights",
        {"conversion_value_rule": {"itinerary_condition": {"travel_length": {"min_nights": 3}}}},
        3,
    ),
    ("metrics.conversions", {"metrics": {"conversions": 1.25}}, 1.25),
    (
        "ad_group_criterion.webpage.coverage_percentage",
        {"ad_group_criterion": {"webpage": {"coverage_percentage": 99.9}}},
        99.9,
    ),
    ("campaign_criterion.bid_modifier", {"campaign_criterion": {"bid_modifier": 1.5}}, 1.5),
    ("ad_group_ad.ad.added_by_google_ads", {"ad_group_ad": {"ad": {"added_by_google_ads": True}}}, True),
    ("ad_group.optimized_targeting_enabled", {"ad_group": {"optimized_targeting_enabled": True}}, True),
    ("campaign.name", {"campaign": {"name": 'Käse "1"\n'}}, 'Käse "1"\n'),
    ("campaign.resource_name", {"campaign": {"resource_name": "customers/1/ads/2"}}, "customers/1/ads/2"),
    ("segments.device", {"segments": {"device": "CONNECTED_TV"}}, "CONNECTED_TV"),
    (
        "account_budget.proposed_end_time_type",
        {"account_budget": {"proposed_end_time_type": "FOREVER"}},
        "FOREVER",
    ),
    (
        "ad_group.primary_status_reasons",
        {"ad_group": {"primary_status_reasons": ["CAMPAIGN_PAUSED", "AD_GROUP_PAUSED"]}},
        ["CAMPAIGN_PAUSED", "AD_GROUP_PAUSED"],
    ),
    ("asset.image_asset.data", {"asset": {"image_asset": {"data": b"\x00\xff"}}}, "AP8="),
    (
        "ad_group_ad.ad.final_urls",
        {"ad_group_ad": {"ad": {"final_urls": ["https://a.example", "https://b.example"]}}},
        ["https://a.example", "https://b.example"],
    ),
    (
        "campaign.shopping_setting.advertising_partner_ids",
        {"campaign": {"shopping_setting": {"advertising_partner_ids": [1, 2]}}},
        [1, 2],
    ),
    (
        "campaign.network_settings",
        {"campaign": {"network_settings": {"target_google_search": True, "target_youtube": False}}},
        {"target_google_search": True, "target_youtube": False},
    ),
    (
        "ad_group_ad.ad.responsive_search_ad.headlines",
        {
            "ad_group_ad": {
                "ad": {"responsive_search_ad": {"headlines": [{"text": "Buy", "pinned_field": "HEADLINE_1"}]}}
            }
        },
        [{"text": "Buy", "pinned_field": "HEADLINE_1"}],
    ),
]  # fmt: skip


def rows(server: GoogleAdsServer, *reply: Batch) -> list[dict[str, Any]]:
    server.reply(CUSTOMER_ID, list[Any](reply))
    source = load_source("google_ads", {"endpoint": server.endpoint})
    return [
        dict(row) for row in source.fetch(google_ads_key(), google_ads_query()) if not isinstance(row, bytes)
    ]


def descriptor() -> Any:
    types = import_module(f"google.ads.googleads.{API_VERSION}.services.types.google_ads_service")
    return types.GoogleAdsRow.pb().DESCRIPTOR


def kind(field: Any) -> tuple[int, bool, bool]:
    return field.type, field.is_repeated, field.has_presence


def all_fields(message: Any, seen: set[str]) -> Iterator[Any]:
    if message.full_name not in seen:
        seen.add(message.full_name)
        for field in message.fields:
            yield field
            if field.message_type is not None:
                yield from all_fields(field.message_type, seen)


def field_of(path: str) -> Any:
    message, field = descriptor(), None
    for step in path.split("."):
        field = message.fields_by_name[step]
        message = field.message_type
    return field


@pytest.mark.parametrize(("path", "sent", "value"), FIELDS, ids=[path for path, _, _ in FIELDS])
def test_a_field_of_each_type_becomes_a_column_of_plain_json(
    google_ads_server: GoogleAdsServer, path: str, sent: dict[str, Any], value: Any
) -> None:
    (row,) = rows(google_ads_server, Batch([path], [sent]))
    assert row == {path.replace(".", "_"): value}
    assert msgspec.json.decode(msgspec.json.encode(row)) == row


def test_the_fields_above_are_of_every_type_that_google_ads_has() -> None:
    every = {kind(field) for field in all_fields(descriptor(), set())}
    assert {kind(field_of(path)) for path, _, _ in FIELDS} == every


@pytest.mark.parametrize("path", [path for path, _, _ in FIELDS])
def test_a_field_that_is_not_set_is_null_if_it_can_tell_and_else_its_default(
    google_ads_server: GoogleAdsServer, path: str
) -> None:
    field = field_of(path)
    if field.is_repeated:
        expected: Any = []
    elif field.has_presence:
        expected = None
    else:
        expected = "UNSPECIFIED" if field.enum_type is not None else field.default_value
    (row,) = rows(google_ads_server, Batch([path], [{"customer": {"id": 1}}]))
    assert row == {path.replace(".", "_"): expected}


@pytest.mark.parametrize(
    ("path", "sent", "value"),
    [
        ("metrics.clicks", {"metrics": {"clicks": 0}}, 0),
        ("metrics.conversions", {"metrics": {"conversions": 0.0}}, 0.0),
        ("campaign.name", {"campaign": {"name": ""}}, ""),
        (
            "ad_group_ad.ad.added_by_google_ads",
            {"ad_group_ad": {"ad": {"added_by_google_ads": False}}},
            False,
        ),
        ("asset.image_asset.data", {"asset": {"image_asset": {"data": b""}}}, ""),
        ("campaign.network_settings", {"campaign": {"network_settings": {}}}, {}),
    ],
)
def test_a_field_that_is_set_to_its_default_is_not_null(
    google_ads_server: GoogleAdsServer, path: str, sent: dict[str, Any], value: Any
) -> None:
    (row,) = rows(google_ads_server, Batch([path], [sent]))
    assert row == {path.replace(".", "_"): value}


def test_names_that_the_client_had_to_change_keep_the_name_of_the_api(
    google_ads_server: GoogleAdsServer,
) -> None:
    sent = {"ad_group_ad": {"ad": {"id": 9, "type_": "RESPONSIVE_SEARCH_AD"}}}
    (row,) = rows(google_ads_server, Batch(["ad_group_ad.ad.type", "ad_group_ad.ad.id"], [sent]))
    assert row == {"ad_group_ad_ad_type": "RESPONSIVE_SEARCH_AD", "ad_group_ad_ad_id": 9}
    (row,) = rows(google_ads_server, Batch(["ad_group_ad.ad"], [sent]))
    assert row == {"ad_group_ad_ad": {"id": 9, "type": "RESPONSIVE_SEARCH_AD"}}


def test_an_enum_value_that_the_client_does_not_know_keeps_its_number(
    google_ads_server: GoogleAdsServer,
) -> None:
    (row,) = rows(google_ads_server, Batch(["segments.device"], [{"segments": {"device": 12345}}]))
    assert row == {"segments_device": "12345"}


def test_columns_are_those_of_the_field_mask_whatever_else_a_row_holds(
    google_ads_server: GoogleAdsServer,
) -> None:
    sent = {"campaign": {"id": 1, "name": "n"}, "metrics": {"clicks": 2}, "segments": {"date": "2026-01-01"}}
    (row,) = rows(google_ads_server, Batch(["segments.date", "campaign.id", "metrics.clicks"], [sent]))
    assert row == {"segments_date": "2026-01-01", "campaign_id": 1, "metrics_clicks": 2}


def test_a_stream_of_many_messages_is_read_to_its_end_in_order(google_ads_server: GoogleAdsServer) -> None:
    batches = [
        Batch(["campaign.id"], [{"campaign": {"id": 1000 * batch + row}} for row in range(1000)])
        for batch in range(12)
    ]
    empty = Batch(["campaign.id"], [])
    found = rows(google_ads_server, empty, *batches[:6], empty, *batches[6:])
    assert [row["campaign_id"] for row in found] == list(range(12_000))


def test_a_message_with_another_field_mask_is_read_by_that(google_ads_server: GoogleAdsServer) -> None:
    sent = [{"campaign": {"id": 1, "name": "n"}}]
    found = rows(google_ads_server, Batch(["campaign.id"], sent), Batch(["campaign.name"], sent))
    assert found == [{"campaign_id": 1}, {"campaign_name": "n"}]


@pytest.mark.parametrize(
    "reply", [[], [Batch([], [])], [Batch(["campaign.id"], [])]], ids=["nothing", "bare", "mask"]
)
def test_an_answer_without_rows_is_an_empty_partition(
    google_ads_server: GoogleAdsServer, reply: Reply
) -> None:
    assert rows(google_ads_server, *[batch for batch in reply if isinstance(batch, Batch)]) == []


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "without a field mask"),
        (["campaign.id", "campaign.nonsense"], "campaign.nonsense"),
        (["nonsense.id"], "nonsense.id"),
        (["campaign.id.more"], "campaign.id.more"),
        (["campaign"], "field campaign"),
        (["campaign.id", "campaign.id"], "one column"),
    ],
    ids=str,
)
def test_rows_that_cannot_be_read_by_their_field_mask_fail_for_good(
    google_ads_server: GoogleAdsServer, paths: list[str], message: str
) -> None:
    with pytest.raises(Permanent, match=message):
        rows(google_ads_server, Batch(paths, [{"campaign": {"id": 1}}]))
