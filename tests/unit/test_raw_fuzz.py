"""Whatever lies in the store: a read gives what was sealed or a typed error, and never a wrong count."""

from __future__ import annotations

import json

import msgspec
import obstore
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from sealbook.errors import Corrupt, InvalidInput
from sealbook.raw import RawStore, Row
from sealbook.raw.layout import RunPaths
from sealbook.storage import Storage
from tests.support.s3 import KEY, RUN, seal_rows

PATHS = RunPaths(KEY, RUN)
ROWS = st.lists(
    st.dictionaries(
        st.text(max_size=9), st.none() | st.booleans() | st.integers() | st.text(max_size=9), max_size=4
    )
    | st.binary(max_size=20),
    max_size=12,
)


def in_memory() -> tuple[RawStore, MemoryStore]:
    objects = MemoryStore()
    return RawStore("memory", Storage(objects), {}), objects


@given(ROWS)
def test_rows_come_back_one_by_one_or_are_refused(rows: list[Row]) -> None:
    """R-RAW-1: as many lines as rows, in order; bytes with a newline never get in."""
    store, _ = in_memory()
    broken = [row for row in rows if isinstance(row, bytes) and b"\n" in row]
    try:
        sealed = seal_rows(store, rows)
    except InvalidInput:
        assert broken
        return
    assert not broken
    lines = store.read(KEY, RUN).payload().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == sealed.record_count == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line == row if isinstance(row, bytes) else json.loads(line) == row


@given(ROWS.filter(lambda rows: not any(isinstance(row, bytes) and b"\n" in row for row in rows)), st.data())
def test_a_damaged_payload_is_never_handed_out_as_whole(rows: list[Row], data: st.DataObject) -> None:
    store, objects = in_memory()
    sealed = seal_rows(store, rows)
    content = store.read(KEY, RUN).payload()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    damaged = content[:start] + data.draw(st.binary(max_size=5)) + content[end:]
    obstore.put(objects, PATHS.payload(sealed.payload_name), damaged)
    try:
        found = store.read(KEY, RUN).payload()
    except Corrupt:
        assert damaged != content
    else:
        assert found == damaged == content


@given(
    ROWS.filter(lambda rows: not any(isinstance(row, bytes) and b"\n" in row for row in rows)),
    st.dictionaries(
        st.sampled_from(
            ["record_count", "payload_bytes", "payload_sha256", "payload_name", "run_id", "source"]
        ),
        st.none() | st.integers(-1, 20) | st.text(max_size=3) | st.just("0" * 64),
        min_size=1,
        max_size=2,
    ),
    st.binary(max_size=3),
)
def test_a_damaged_seal_never_gives_a_wrong_count(
    rows: list[Row], changes: dict[str, object], tail: bytes
) -> None:
    store, objects = in_memory()
    sealed = seal_rows(store, rows)
    text = msgspec.json.encode(msgspec.json.decode(sealed.to_json()) | changes) + tail
    obstore.put(objects, PATHS.metadata, text)
    try:
        partition = store.read(KEY, RUN)
        content = partition.payload()
    except Corrupt:
        return
    assert partition.metadata.record_count == content.count(b"\n") == len(rows)
