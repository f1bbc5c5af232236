"""R-RAW-1: where a raw partition lies, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.raw.layout import RunPaths, parse_run, payload_name
from tests.support.s3 import KEY, RUN

DIRECTORY = (
    "demo/customer_id=1001/query_name=campaign_daily/logical_date=2026-01-01"
    "/run_id=01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
)


def test_the_layout_is_the_one_of_the_rule() -> None:
    paths = RunPaths(KEY, RUN)
    assert paths.directory == DIRECTORY
    assert paths.payload() == f"{DIRECTORY}/payload.jsonl"
    assert paths.payload(payload_name("0" * 32)) == f"{DIRECTORY}/payload-{'0' * 32}.jsonl"
    assert paths.metadata == f"{DIRECTORY}/metadata.json"


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True)


@given(
    NAMES.filter(lambda name: name != "google_ads"),
    st.from_regex(r"[0-9A-Za-z_]{1,64}", fullmatch=True),
    NAMES,
    st.dates(),
    st.from_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True),
)
def test_every_key_and_run_can_be_read_off_its_path(
    source: str, customer_id: str, query_name: str, day: object, run_id: str
) -> None:
    paths = RunPaths(PartitionKey(source, customer_id, query_name, day), RunId(run_id))  # type: ignore[arg-type]
    assert parse_run(paths.directory) == paths


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("demo/", "Demo/"),
        ("demo/", ""),
        ("demo/", "/demo/"),
        ("demo/", "raw/demo/"),
        ("customer_id=1001", "customer_id="),
        ("customer_id=1001", "customer_id=123-456-7890"),
        ("customer_id=1001", "customer=1001"),
        ("customer_id=1001", "customer_id=1001/customer_id=1001"),
        ("campaign_daily", "campaign-daily"),
        ("2026-01-01", "2026-02-30"),
        ("2026-01-01", "20260101"),
        ("01J8ZQ6T5N8W3Y2V7R4K9M0XCE", "01j8zq6t5n8w3y2v7r4k9m0xce"),
        ("01J8ZQ6T5N8W3Y2V7R4K9M0XCE", "latest"),
        ("M0XCE", "M0XCE/"),
        ("M0XCE", "M0XCE\n"),
    ],
)
def test_any_other_path_is_refused(part: str, other: str) -> None:
    assert part in DIRECTORY
    with pytest.raises(InvalidInput):
        parse_run(DIRECTORY.replace(part, other))
