"""R-WH-6: where artifacts lie, both ways."""

from __future__ import annotations

from datetime import date

import pytest

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import FIRST_FORMAT, FORMAT, Artifact, Staged, is_unnamed
from sealbook.warehouse.layout import PartName, location_of, parse_location, parse_part, part_paths

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


def filed(parts: int, *, artifact_format: int = FORMAT, copy: int = 0) -> Staged:
    """Return an artifact of so many parts."""
    digests = tuple(f"{number:064x}" for number in range(parts))
    named = parts > 1 and not is_unnamed(artifact_format, copy)
    return Staged(
        ARTIFACT, 0, 0, digests[0], LOCATION, parts, artifact_format, copy, digests if named else None
    )


@pytest.mark.parametrize("parts", [1, 11])
@pytest.mark.parametrize("copy", [0, 1, 12])
def test_names_carry_number_digest_and_copy(parts: int, copy: int) -> None:
    """R-WH-2: in the order of their rows."""
    paths = part_paths(filed(parts, copy=copy))
    assert paths == sorted(paths)
    assert [parse_part(path) for path in paths] == [
        PartName(number, f"{number:064x}", copy) for number in range(parts)
    ]
    assert paths[0].startswith(f"{LOCATION}/part-00000-{0:064x}")


def test_names_of_the_first_format_carry_no_digest() -> None:
    """What was loaded before is still found; written anew, it gets a name with a digest."""
    paths = part_paths(filed(2, artifact_format=FIRST_FORMAT))
    assert paths == [f"{LOCATION}/part-00000.parquet", f"{LOCATION}/part-00001.parquet"]
    assert [parse_part(path) for path in paths] == [PartName(0, None, 0), PartName(1, None, 0)]
    assert part_paths(filed(2, artifact_format=FIRST_FORMAT, copy=1)) == part_paths(filed(2, copy=1))


@pytest.mark.parametrize(
    "name",
    [
        "part-1.parquet",
        "part-00000.parquet.crc",
        "_new-1",
        "data.parquet",
        f"part-00000-{0:063x}.parquet",
        f"part-00000-{0:064x}-0.parquet",
        "part-00000-1.parquet",
    ],
)
def test_other_names_are_no_parts(name: str) -> None:
    assert parse_part(f"{LOCATION}/{name}") is None


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
