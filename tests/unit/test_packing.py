"""Event data as few bytes: any JSON value comes back as it was, and the form never changes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sealbook.ledger.events.packing import pack, unpack

RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
PARTITION = "demo/1234567890/campaign_daily/2026-01-01"
LOCATION = (
    "demo/campaign_daily/schema_version=1/customer_id=1234567890/logical_date=2026-01-01"
    f"/run_id={RUN}/part.parquet"
)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
names = st.sampled_from(["bytes", "outcome", "extractedAt", "else", ""]) | texts
tricky = st.sampled_from(
    [RUN, LOCATION, f"={RUN}/", "ab" * 32, "AB" * 32, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | texts | tricky, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=10
)


@given(values, st.sampled_from([RUN, "r", "/", "="]), st.none() | st.just(PARTITION) | texts)
@example({"bytes": {"bytes": 2**64}}, RUN, PARTITION)
@example("0001-01-01T00:00:00Z", RUN, PARTITION)
@example("9999-12-31T23:59:59.999999Z", RUN, PARTITION)
@example(f"{RUN}/1/2", RUN, "1/2/1/2/1/2/1/2/1/2/1/2")
def test_what_is_packed_comes_back(value: object, run_id: str, partition: str | None) -> None:
    """R-EVT-3: event data is any JSON value; numbers keep their kind, and text is text."""
    found = unpack(pack(value, run_id, partition), run_id, partition)
    assert repr(_sorted(found)) == repr(_sorted(value))


def _sorted(value: object) -> object:
    """Let the order of members not matter; repr tells 1 from 1.0 and 0.0 from -0.0."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_the_form_is_that_of_every_book() -> None:
    """R-EVT-4: an event that is appended again is compared by its bytes, also after years."""
    sealed = {
        "schemaVersion": "1",
        "payloadSha256": "ab" * 32,
        "extractedAt": "2026-01-01T06:00:00.500000Z",
        "recordCount": 7,
        "custom": [1.5, True],
    }
    assert pack(sealed, RUN, PARTITION) == (
        b"\x85\xa6custom\x92\xcb?\xf8\x00\x00\x00\x00\x00\x00\xc3\x06\xd7\xffw5\x94\x00iV\r`\r\xc4 "
        + b"\xab" * 32
        + b"\x10\x07\x14\xa11"
    )
    assert pack({"location": LOCATION}, RUN, PARTITION) == (
        b"\x81\t\xd9L\x001/\x003/schema_version=1/customer_id=\x002/logical_date=\x004/run_id=\x000/part.parquet"
    )
    assert pack({"big": 2**64}) == b'\xc1{"big":18446744073709551616}'
