"""R-RAW-3: `metadata.json` is read strictly, and fuzz never gets through as anything but Corrupt."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import Corrupt, InvalidInput
from sealbook.model import RunId
from sealbook.raw import RawMetadata
from tests.support.s3 import EXTRACTED_AT, RUN

PATH = "demo/metadata.json"
METADATA = RawMetadata(
    source="demo",
    customer_id="1001",
    query_name="campaign_daily",
    logical_date=date(2026, 1, 1),
    run_id=RUN,
    extracted_at=EXTRACTED_AT,
    schema_version="v1",
    record_count=3,
    api_version=None,
    query_hash="abc",
    payload_name="payload-b.jsonl",
    payload_bytes=63,
    payload_sha256="a" * 64,
    extra={"host": "a"},
)
FIELDS: dict[str, Any] = msgspec.json.decode(METADATA.to_json())
REQUIRED = [item.name for item in fields(RawMetadata) if item.name not in ("payload_name", "extra")]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_it_reads_what_it_writes() -> None:
    assert RawMetadata.from_json(METADATA.to_json(), PATH) == METADATA
    assert isinstance(RawMetadata.from_json(METADATA.to_json(), PATH).run_id, RunId)


@given(
    st.integers(0, 2**63),
    st.datetimes(timezones=st.just(UTC)),
    st.none() | st.text(min_size=1).filter(str.strip),
    st.dictionaries(st.text(min_size=1).map("x_{}".format), JSON, max_size=4),
)
def test_every_value_survives(
    count: int, at: datetime, api_version: str | None, extra: dict[str, Any]
) -> None:
    metadata = replace(METADATA, record_count=count, extracted_at=at, api_version=api_version, extra=extra)
    again = RawMetadata.from_json(metadata.to_json(), PATH)
    assert again == metadata
    assert again.to_json() == metadata.to_json()


def test_a_time_is_kept_in_utc() -> None:
    local = EXTRACTED_AT.astimezone(timezone(timedelta(hours=5)))
    assert replace(METADATA, extracted_at=local).to_json() == METADATA.to_json()


def test_a_seal_that_names_no_payload_means_payload_jsonl() -> None:
    """R-RAW-1: so other tools, and earlier versions of Sealbook, write it."""
    data = msgspec.json.encode({name: FIELDS[name] for name in REQUIRED} | {"write_id": "b" * 32})
    metadata = RawMetadata.from_json(data, PATH)
    assert metadata.payload_name == "payload.jsonl"
    assert metadata.extra == {"write_id": "b" * 32}
    assert RawMetadata.from_json(metadata.to_json(), PATH) == metadata


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_field_is_named(name: str) -> None:
    data = msgspec.json.encode({key: value for key, value in FIELDS.items() if key != name})
    with pytest.raises(Corrupt, match=f"{PATH} has no field {name}"):
        RawMetadata.from_json(data, PATH)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", "Demo"),
        ("customer_id", 1001),
        ("query_name", None),
        ("logical_date", "2026-02-30"),
        ("logical_date", "2026-01-01T00:00:00Z"),
        ("run_id", "latest"),
        ("run_id", 7),
        ("extracted_at", "2026-01-01"),
        ("extracted_at", "2026-01-01T00:00:00"),
        ("extracted_at", "0001-01-01T00:00:00+23:59"),
        ("extracted_at", 1767225600),
        ("schema_version", ""),
        ("schema_version", "../v1"),
        ("record_count", -1),
        ("record_count", True),
        ("record_count", 3.0),
        ("record_count", "3"),
        ("api_version", ""),
        ("api_version", 21),
        ("query_hash", " "),
        ("payload_bytes", None),
        ("payload_sha256", "A" * 64),
        ("payload_sha256", "a" * 63),
        ("payload_name", None),
        ("payload_name", "../payload.jsonl"),
        ("payload_name", "payload-../x.jsonl"),
        ("payload_name", "payload-.jsonl"),
        ("payload_name", "metadata.json"),
        ("payload_name", "payload.jsonl\n"),
    ],
)
def test_a_wrong_field_is_named(name: str, value: object) -> None:
    with pytest.raises(Corrupt, match=f"{PATH}: {name} "):
        RawMetadata.from_json(msgspec.json.encode(FIELDS | {name: value}), PATH)


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"{", b'{"a":1}x', b"\xff", b'{"\xff":1}', b'{"a":' + b"[" * 100_000]
)
def test_what_is_no_json_object_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt, match=PATH):
        RawMetadata.from_json(data, PATH)


def test_extra_cannot_hide_a_field() -> None:
    with pytest.raises(InvalidInput, match="record_count"):
        replace(METADATA, extra={"record_count": 9})


@given(st.binary())
def test_any_bytes_are_read_or_corrupt(data: bytes) -> None:
    _read_or_corrupt(data)


@given(st.dictionaries(st.sampled_from(REQUIRED) | st.text(), JSON, max_size=6))
def test_any_fields_are_read_or_corrupt(changes: dict[str, object]) -> None:
    _read_or_corrupt(msgspec.json.encode(FIELDS | changes))


@given(st.data())
def test_any_damage_is_read_or_corrupt(data: st.DataObject) -> None:
    text = bytearray(METADATA.to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    _read_or_corrupt(bytes(text))


def _read_or_corrupt(data: bytes) -> None:
    try:
        metadata = RawMetadata.from_json(data, PATH)
    except Corrupt:
        return
    assert RawMetadata.from_json(metadata.to_json(), PATH) == metadata
