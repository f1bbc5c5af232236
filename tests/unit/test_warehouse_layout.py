"""R-WH-6: where artifacts lie, both ways."""

from __future__ import annotations

from datetime import date

import pytest

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.publication import Artifact
from sealbook.warehouse.layout import is_part, location_of, parse_location, part_paths

ARTIFACT = Artifact(
    PartitionKey("demo", "c1", "campaign_daily", date(2026, 1, 2)), RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE"), "2.1"
)
LOCATION = (
    "demo/campaign_daily/schema_version=2.1/customer_id=c1/logical_date=2026-01-02"
    "/run_id=01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
)


def test_an_artifact_is_found_by_its_location_and_the_other_way_round() -> None:
    assert location_of(ARTIFACT) == LOCATION
    assert parse_location(LOCATION) == ARTIFACT


def test_parts_are_numbered_in_the_order_of_their_rows() -> None:
    paths = part_paths(LOCATION, 11)
    assert paths[0] == f"{LOCATION}/part-00000.parquet"
    assert paths == sorted(paths)
    assert all(map(is_part, paths))


@pytest.mark.parametrize("name", ["part-1.parquet", "part-00000.parquet.crc", "_new-1", "data.parquet"])
def test_other_names_are_no_parts(name: str) -> None:
    assert not is_part(f"{LOCATION}/{name}")


@pytest.mark.parametrize(
    "location",
    [
        "demo",
        f"{LOCATION}/more",
        LOCATION.replace("2026-01-02", "2026-02-30"),
        LOCATION.replace("run_id=01", "run_id=xx"),
        LOCATION.replace("schema_version=2.1", "schema_version=.."),
        LOCATION.replace("demo/", "Demo/"),
    ],
)
def test_a_directory_of_somebody_else_is_no_location(location: str) -> None:
    with pytest.raises(InvalidInput):
        parse_location(location)
