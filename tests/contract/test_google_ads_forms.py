"""Every form of a Google Ads field, from the server's protobuf to a typed column, as the docs have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sealbook.extract.extractor import Extractor
from sealbook.model import RunId
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column
from sealbook.raw import RawReader
from sealbook.rows.parser import RowParser
from tests.support.google_ads import CUSTOMER_ID, Batch, GoogleAdsServer, google_ads_key, google_ads_query

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "google-ads-rows.md"
RUN_ID = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")

HEADLINES = [{"text": "Buy", "pinned_field": "HEADLINE_1"}, {"text": "Now"}]
ROW: Mapping[str, Any] = {
    "campaign": {
        "id": 2**63 - 1,
        "name": "Käse",
        "resource_name": "customers/1/campaigns/2",
        "network_settings": {"target_youtube": True},
        "shopping_setting": {"advertising_partner_ids": [7, 8]},
    },
    "segments": {"date": "2026-01-01", "device": "MOBILE"},
    "metrics": {"cost_micros": 1_990_000, "conversions": 0.1},
    "campaign_criterion": {"bid_modifier": 1.1},
    "ad_group": {"primary_status_reasons": ["CAMPAIGN_PAUSED"]},
    "ad_group_ad": {
        "ad": {
            "final_urls": ["https://a.example"],
            "added_by_google_ads": False,
            "responsive_search_ad": {"headlines": HEADLINES},
        }
    },
    "asset": {"image_asset": {"data": b"\x00\xff"}},
    "change_event": {
        "changed_fields": {"paths": ["campaign.name"]},
        "change_date_time": "2026-01-01 10:00:00.5",
    },
}

# the path, the contract type, and the value as it is read
FORMS: list[tuple[str, str, Any]] = [
    ("campaign.id", "bigint", 2**63 - 1),
    ("campaign.name", "string", "Käse"),
    ("campaign.resource_name", "string", "customers/1/campaigns/2"),
    ("segments.date", "date", "2026-01-01"),
    ("change_event.change_date_time", "string", "2026-01-01 10:00:00.5"),
    ("metrics.cost_micros", "bigint", 1_990_000),
    ("metrics.cost_micros", "decimal(18,0)", Decimal(1_990_000)),
    ("metrics.conversions", "double", 0.1),
    ("metrics.conversions", "decimal(18,6)", Decimal("0.100000")),
    ("campaign_criterion.bid_modifier", "double", 1.1),
    ("ad_group_ad.ad.added_by_google_ads", "boolean", False),
    ("segments.device", "string", "MOBILE"),
    ("ad_group.primary_status_reasons", "array<string>", ["CAMPAIGN_PAUSED"]),
    ("asset.image_asset.data", "string", "AP8="),
    ("ad_group_ad.ad.final_urls", "array<string>", ["https://a.example"]),
    ("campaign.shopping_setting.advertising_partner_ids", "array<bigint>", [7, 8]),
    (
        "campaign.network_settings",
        "struct<target_youtube:boolean,target_google_search:boolean>",
        {"target_youtube": True, "target_google_search": None},
    ),
    (
        "ad_group_ad.ad.responsive_search_ad.headlines",
        "array<struct<text:string,pinned_field:string>>",
        [{"text": "Buy", "pinned_field": "HEADLINE_1"}, {"text": "Now", "pinned_field": None}],
    ),
    (
        "ad_group_ad.ad.responsive_search_ad.headlines",
        "json",
        '[{"pinned_field":"HEADLINE_1","text":"Buy"},{"text":"Now"}]',
    ),
    ("change_event.changed_fields", "struct<paths:array<string>>", {"paths": ["campaign.name"]}),
]


@pytest.mark.parametrize(("path", "kind", "value"), FORMS, ids=[f"{path} {kind}" for path, kind, _ in FORMS])
def test_a_field_is_read_as_the_contract_type_of_its_form(
    google_ads_server: GoogleAdsServer, tmp_path: Path, path: str, kind: str, value: Any
) -> None:
    """From gRPC through the sealed payload to the column."""
    google_ads_server.reply(CUSTOMER_ID, [Batch([path], [ROW])])
    options = {"endpoint": google_ads_server.endpoint}
    extractor = Extractor(
        RUN_ID,
        "google_ads",
        {"campaign_daily": google_ads_query()},
        tmp_path.as_uri(),
        options,
    )
    [done] = extractor.extract((google_ads_key(),))
    assert done.error_message is None
    payload = RawReader.open(tmp_path.as_uri()).read(google_ads_key(), RUN_ID).payload()
    column = Column(path.replace(".", "_"), ColumnType(kind), required=True)
    block = RowParser([column]).parse([payload])
    [part] = block.parts
    assert (part.rows, part.lines) == (1, 1)
    [read] = block.table[column.name].to_pylist()
    assert (read.isoformat() if kind == "date" else read) == value


def test_the_docs_have_every_form() -> None:
    """Each path with its type stands in the table."""
    lines = [
        line.replace("\\|", "|") for line in DOCS.read_text("utf-8").splitlines() if line.startswith("|")
    ]
    shown = {(path, kind) for line in lines for path in re.findall(r"`([a-z_.]+\.[a-z_.]+)`", line)
             for kind in re.findall(r"`([a-z]+(?:[<(].*?[>)]+)?)`", line)}  # fmt: skip
    missing = [(path, kind) for path, kind, _ in FORMS if (path, kind) not in shown]
    assert missing == []
