"""What a raw store promises, on a folder and on S3 alike."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from hashlib import sha256
from types import MappingProxyType

import msgspec
import obstore
import pytest

from sealbook.errors import (
    AlreadySealed,
    Corrupt,
    InvalidInput,
    NotFound,
    Transient,
)
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.raw import RawStore, Row
from sealbook.raw.layout import RunPaths
from tests.support.s3 import EXTRACTED_AT, KEY, RUN, SEAL, numbered, seal_rows

OLDER = RunId("01J8ZQ6T5N0000000000000000")
PATHS = RunPaths(KEY, RUN)


def put(store: RawStore, path: str, data: bytes) -> None:
    """Place an object without any of the store's care, as a crash or a vandal would."""
    obstore.put(store._storage._store, path, data)


def paths(store: RawStore) -> list[str]:
    return store._storage.names("demo")


def sealed_paths(store: RawStore) -> list[str]:
    """What lies there when nothing is left over."""
    return [PATHS.metadata, store.read(KEY, RUN).path]


def test_what_is_sealed_is_read_back_in_order(raw_store: RawStore) -> None:
    """R-RAW-1: the payload holds one JSON object a line, in the order received."""
    rows: list[Row] = [{"z": 1, "a": "line\nbreak"}, b'{"b":2}', MappingProxyType({"c": None}), {}]
    payload = b'{"z":1,"a":"line\\nbreak"}\n{"b":2}\n{"c":null}\n{}\n'
    sealed = seal_rows(raw_store, rows)
    partition = raw_store.read(KEY, RUN)
    assert partition.metadata == sealed
    assert partition.payload() == payload
    assert b"".join(partition.chunks()) == payload
    assert list(partition.lines()) == payload.splitlines()
    assert paths(raw_store) == sealed_paths(raw_store)


def test_the_seal_says_all_that_the_rule_asks(raw_store: RawStore) -> None:
    """R-RAW-3: the fields of metadata.json, by their names."""
    payload = raw_store.write(KEY, RUN, numbered(3))
    raw_store.seal(KEY, RUN, payload, **SEAL)
    data = raw_store._storage.get(PATHS.metadata)
    assert data is not None
    content = raw_store.read(KEY, RUN).payload()
    assert msgspec.json.decode(data) == {
        "source": "demo",
        "customer_id": "1001",
        "query_name": "campaign_daily",
        "logical_date": "2026-01-01",
        "run_id": RUN,
        "extracted_at": "2026-01-02T03:04:05.678901Z",
        "schema_version": "v1",
        "record_count": 3,
        "api_version": "v21",
        "query_hash": "0" * 64,
        "payload_name": payload.name,
        "payload_bytes": len(content),
        "payload_sha256": sha256(content).hexdigest(),
    }
    assert raw_store.metadata(KEY, RUN).extracted_at == EXTRACTED_AT


def test_unknown_fields_of_a_seal_are_kept(raw_store: RawStore) -> None:
    """R-RAW-3: unknown extra fields are kept and ignored."""
    sealed = seal_rows(raw_store, numbered(1))
    fields = msgspec.json.decode(sealed.to_json()) | {"extractor": {"host": "a"}, "retries": 2}
    put(raw_store, PATHS.metadata, msgspec.json.encode(fields))
    metadata = raw_store.metadata(KEY, RUN)
    assert metadata.extra == {"extractor": {"host": "a"}, "retries": 2}
    assert msgspec.json.decode(metadata.to_json()) == fields
    assert raw_store.read(KEY, RUN).payload()


def test_an_empty_partition_can_be_sealed(raw_store: RawStore) -> None:
    assert seal_rows(raw_store, []).record_count == 0
    assert raw_store.read(KEY, RUN).payload() == b""
    assert list(raw_store.read(KEY, RUN).lines()) == []
    assert raw_store.read(KEY, RUN).range(0) == b""


def test_a_payload_of_many_parts_and_chunks_is_whole(raw_store: RawStore) -> None:
    """R-RAW-1, beyond what one upload part (8 MB) or one chunk of a read (4 MB) holds."""
    line = b'{"text":"' + b"x" * 10_000 + b'"}'
    sealed = seal_rows(raw_store, (line for _ in range(2_000)))
    assert (sealed.record_count, sealed.payload_bytes) == (2_000, 2_000 * (len(line) + 1))
    chunks = list(raw_store.read(KEY, RUN).chunks())
    assert len(chunks) > 1
    assert b"".join(chunks) == (line + b"\n") * 2_000
    assert set(raw_store.read(KEY, RUN).lines()) == {line}
    assert paths(raw_store) == sealed_paths(raw_store)


def test_what_is_not_sealed_does_not_exist(raw_store: RawStore) -> None:
    """R-RAW-2: without metadata.json there is no partition, whatever else lies there."""
    raw_store.write(KEY, RUN, numbered(2))
    put(raw_store, PATHS.payload(), b'{"half": ')
    assert not raw_store.is_sealed(KEY, RUN)
    assert raw_store.runs(KEY) == []
    assert list(raw_store.sealed()) == []
    with pytest.raises(NotFound, match=f"{KEY} run {RUN} is not sealed") as error:
        raw_store.read(KEY, RUN)
    assert error.value.remedy is not None


def test_a_sealed_run_is_not_touched_by_a_later_write(raw_store: RawStore) -> None:
    """R-RAW-4: sealed is immutable; who writes again is told at the seal, and leaves nothing behind."""
    first = seal_rows(raw_store, numbered(2, writer=1))
    before = {path: raw_store._storage.get(path) for path in paths(raw_store)}
    with pytest.raises(AlreadySealed, match=f"{KEY} run {RUN}"):
        seal_rows(raw_store, numbered(5, writer=2))
    assert raw_store.read(KEY, RUN).metadata == first
    assert {path: raw_store._storage.get(path) for path in paths(raw_store)} == before


def test_of_two_writers_the_second_to_seal_is_told(raw_store: RawStore) -> None:
    """R-RAW-2, R-RAW-4: the bytes stay those of the first, though both had written before."""
    first = raw_store.write(KEY, RUN, numbered(2, writer=1))
    second = raw_store.write(KEY, RUN, numbered(5, writer=2))
    sealed = raw_store.seal(KEY, RUN, second, **SEAL)
    with pytest.raises(AlreadySealed):
        raw_store.seal(KEY, RUN, first, **SEAL)
    assert raw_store.read(KEY, RUN).metadata == sealed
    assert raw_store.read(KEY, RUN).payload() == b"".join(
        b'{"writer":2,"row":%d}\n' % row for row in range(5)
    )
    assert paths(raw_store) == sealed_paths(raw_store)


def test_writers_of_equal_rows_do_not_both_seal(raw_store: RawStore) -> None:
    """R-RAW-2: exactly one, even where nobody could tell the payloads apart."""
    payloads = [raw_store.write(KEY, RUN, numbered(3)) for _ in range(3)]
    raw_store.seal(KEY, RUN, payloads[0], **SEAL)
    for payload in payloads[1:]:
        with pytest.raises(AlreadySealed):
            raw_store.seal(KEY, RUN, payload, **SEAL)


def test_sealing_the_same_payload_again_gives_the_same_seal(raw_store: RawStore) -> None:
    payload = raw_store.write(KEY, RUN, numbered(3))
    first = raw_store.seal(KEY, RUN, payload, **SEAL)
    assert raw_store.seal(KEY, RUN, payload, **SEAL) == first
    assert raw_store.seal(KEY, RUN, payload, **{**SEAL, "schema_version": "v2"}) == first
    assert paths(raw_store) == sealed_paths(raw_store)


def test_an_unsealed_leftover_of_the_run_is_in_nobodys_way(raw_store: RawStore) -> None:
    """R-RAW-4: the same run may write anew what its crash left unsealed."""
    raw_store.write(KEY, RUN, numbered(9, writer=1))
    put(raw_store, PATHS.payload(), b'{"torn":')
    sealed = seal_rows(raw_store, numbered(2, writer=2))
    assert sealed.record_count == 2
    assert b"torn" not in raw_store.read(KEY, RUN).payload()
    assert [each.payload_bytes for each in raw_store.sealed()] == [sealed.payload_bytes]


def test_a_seal_that_names_no_payload_is_read(raw_store: RawStore) -> None:
    """R-RAW-1: so earlier versions of Sealbook sealed, and other tools may."""
    sealed = seal_rows(raw_store, numbered(3, writer=1))
    content = raw_store.read(KEY, RUN).payload()
    fields = msgspec.json.decode(sealed.to_json()) | {"write_id": "0" * 32}
    del fields["payload_name"]
    raw_store._storage.delete([raw_store.read(KEY, RUN).path])
    put(raw_store, PATHS.metadata, msgspec.json.encode(fields))
    put(raw_store, PATHS.payload(), content)
    put(raw_store, f"{PATHS.directory}/_intent", msgspec.json.encode(fields))
    assert raw_store.read(KEY, RUN).payload() == content
    assert list(raw_store.sealed()) == [(KEY, RUN, len(content))]
    with pytest.raises(AlreadySealed):
        seal_rows(raw_store, numbered(1, writer=2))
    assert raw_store.read(KEY, RUN).payload() == content


def test_runs_of_a_partition_do_not_touch_each_other(raw_store: RawStore) -> None:
    """R-RUN-1: a retry is a new run; runs are listed oldest first."""
    seal_rows(raw_store, numbered(1, writer=1), run_id=RUN)
    seal_rows(raw_store, numbered(2, writer=2), run_id=OLDER)
    assert raw_store.runs(KEY) == [OLDER, RUN]
    assert all(isinstance(run_id, RunId) for run_id in raw_store.runs(KEY))
    assert raw_store.read(KEY, OLDER).metadata.record_count == 2
    assert raw_store.read(KEY, RUN).metadata.record_count == 1


@pytest.mark.parametrize("error", [OSError("the source broke"), KeyboardInterrupt()])
def test_a_write_that_breaks_off_leaves_nothing(raw_store: RawStore, error: BaseException) -> None:
    """The source's own error comes through untouched, even of a kind that a storage raises, too."""

    def rows() -> Iterator[Row]:
        yield from numbered(1_000)
        raise error

    with pytest.raises(type(error)) as caught:
        raw_store.write(KEY, RUN, rows())
    assert caught.value is error
    assert paths(raw_store) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b'{"a":1}\n{"b":2}', "one line"),
        (b"\n", "one line"),
        ({"a": object()}, "no JSON form"),
        ({"a": "\ud800"}, "surrogates"),
        ({(1, 2): 3}, "no JSON form"),
        ("text", "neither a mapping nor"),
        (["list"], "neither a mapping nor"),
        (None, "neither a mapping nor"),
    ],
)
def test_a_row_that_is_not_one_line_is_refused(raw_store: RawStore, row: Row, message: str) -> None:
    """R-RAW-1: one object a line; the error names the row."""
    with pytest.raises(InvalidInput, match=f"row 301 .*{message}") as error:
        raw_store.write(KEY, RUN, [*numbered(300), row, *numbered(300)])
    assert error.value.field == "row 301"
    assert paths(raw_store) == []


def test_a_payload_of_another_run_cannot_be_sealed(raw_store: RawStore) -> None:
    payload = raw_store.write(KEY, RUN, numbered(1))
    with pytest.raises(InvalidInput, match="payload"):
        raw_store.seal(KEY, OLDER, payload, **SEAL)
    assert not raw_store.is_sealed(KEY, OLDER)


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema_version": "a/b"},
        {"query_hash": ""},
        {"api_version": ""},
        {"extracted_at": EXTRACTED_AT.replace(tzinfo=None)},
    ],
)
def test_a_seal_refuses_what_it_could_not_say(raw_store: RawStore, wrong: Mapping[str, object]) -> None:
    payload = raw_store.write(KEY, RUN, numbered(1))
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        raw_store.seal(KEY, RUN, payload, **{**SEAL, **wrong})
    assert not raw_store.is_sealed(KEY, RUN)
    raw_store.seal(KEY, RUN, payload, **SEAL)


def test_damage_to_a_sealed_payload_is_found(raw_store: RawStore) -> None:
    """A reader gets what was sealed or is told."""
    seal_rows(raw_store, numbered(3))
    content, path = raw_store.read(KEY, RUN).payload(), raw_store.read(KEY, RUN).path
    for damaged in (content[:-1], content + b"x", content.replace(b"1", b"2"), b"", content + b"\n"):
        put(raw_store, path, damaged)
        with pytest.raises(Corrupt, match=path):
            raw_store.read(KEY, RUN).payload()
    raw_store._storage.delete([path])
    with pytest.raises(Corrupt, match="missing"):
        raw_store.read(KEY, RUN).payload()


def test_a_seal_that_miscounts_is_found(raw_store: RawStore) -> None:
    sealed = seal_rows(raw_store, numbered(3))
    wrong = msgspec.json.decode(sealed.to_json()) | {"record_count": 4}
    put(raw_store, PATHS.metadata, msgspec.json.encode(wrong))
    with pytest.raises(Corrupt, match="record_count is 3, the seal says 4"):
        raw_store.read(KEY, RUN).payload()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", "other"),
        ("customer_id", "1002"),
        ("query_name", "ad_group_daily"),
        ("logical_date", "2026-01-02"),
        ("run_id", OLDER),
    ],
)
def test_a_seal_must_agree_with_its_path(raw_store: RawStore, name: str, value: str) -> None:
    """R-VER-1: sealed metadata agrees with its path."""
    fields = msgspec.json.decode(seal_rows(raw_store, numbered(1)).to_json())
    put(raw_store, PATHS.metadata, msgspec.json.encode(fields | {name: str(value)}))
    with pytest.raises(Corrupt, match=f"{PATHS.metadata} does not agree with its path"):
        raw_store.read(KEY, RUN)


def test_a_range_of_the_payload_can_be_read(raw_store: RawStore) -> None:
    seal_rows(raw_store, numbered(10))
    partition = raw_store.read(KEY, RUN)
    content = partition.payload()
    size = len(content)
    assert partition.size() == size
    for start, end in [
        (0, 5),
        (3, 3),
        (7, size),
        (size - 1, size + 9),
        (size, size + 1),
        (size + 5, size + 9),
    ]:
        assert partition.range(start, end) == content[start:end]
    assert partition.range(4) == content[4:]
    with pytest.raises(InvalidInput):
        partition.range(-1, 4)
    assert partition.url == f"{raw_store.url}/{partition.path}"
    raw_store._storage.delete([partition.path])
    with pytest.raises(Corrupt, match="missing"):
        partition.range(0, 4)


def test_sealed_runs_are_listed_by_source_customer_query_and_day(raw_store: RawStore) -> None:
    days = [date(2026, 1, 1) + timedelta(days=day) for day in range(3)]
    keys = sorted(
        PartitionKey(source, customer, query, day)
        for source in ("demo", "demo_2")
        for customer in ("1", "10", "A_b")
        for query in ("q", "q2", "q_x")
        for day in days
    )
    for key in keys:
        put(raw_store, RunPaths(key, RUN).metadata, b"{}")
    put(raw_store, RunPaths(keys[0], OLDER).metadata, b"{}")
    put(raw_store, RunPaths(keys[1], OLDER).payload(), b"{}")
    stray = RunPaths(keys[1], OLDER).metadata.replace(OLDER, "latest")
    for path in (stray, "demo/metadata.json", "demo/customer_id=1/notes.txt", "readme.txt"):
        put(raw_store, path, b"{}")

    everything = [(keys[0], OLDER, 0), *((key, RUN, 0) for key in keys)]
    assert list(raw_store.sealed()) == everything
    for selection in (
        Selection(source="demo", customers=["10", "1", "10"], queries="q"),
        Selection(source=["demo_2", "demo"], queries=["q_x", "q"]),
        Selection(since=days[1], until=days[1]),
        Selection(queries="q_x", since=days[2]),
        Selection(keys=[keys[3], keys[0]]),
    ):
        chosen = [each for each in everything if selection.matches(each[0])]
        assert chosen
        assert list(raw_store.sealed(selection)) == chosen
    assert list(raw_store.sealed(Selection(runs=[OLDER]))) == everything[:1]
    assert list(raw_store.sealed(Selection(customers=[]))) == []
    assert list(raw_store.sealed(Selection(source="other"))) == []
    for wrong in ({"source": "a/b"}, {"queries": "../x"}, {"customers": "../.."}):
        with pytest.raises(InvalidInput):
            Selection(**wrong)  # type: ignore[arg-type]  # nothing outside the store can be listed


def test_a_store_travels_to_a_worker_as_its_url(raw_store: RawStore) -> None:
    sealed = seal_rows(raw_store, numbered(2))
    copy = pickle.loads(pickle.dumps(raw_store))
    assert copy.url == raw_store.url
    assert copy.read(KEY, RUN).metadata == sealed
    assert pickle.loads(pickle.dumps(sealed)) == sealed
    assert repr(copy) == f"RawStore({raw_store.url!r})"


def test_a_failed_tidying_does_not_hide_that_a_rival_sealed(
    raw_store: RawStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: object) -> None:
        raise Transient("no delete today")

    payload = raw_store.write(KEY, RUN, numbered(2))
    seal_rows(raw_store, numbered(3))
    monkeypatch.setattr(raw_store._storage, "delete", refuse)
    with caplog.at_level(logging.WARNING), pytest.raises(AlreadySealed):
        raw_store.seal(KEY, RUN, payload, **SEAL)
    assert "no delete today" in caplog.text
    assert raw_store.read(KEY, RUN).metadata.record_count == 3


def test_runs_that_are_of_no_interest_are_left_out(raw_store: RawStore) -> None:
    """Whether they are there or not; the others are found between them."""
    for run_id in (OLDER, RUN):
        seal_rows(raw_store, numbered(1), run_id=run_id)
    name = (KEY.source, KEY.customer_id, KEY.query_name, KEY.logical_date)
    absent = (KEY.source, "0", KEY.query_name, KEY.logical_date)

    def left(*besides: tuple[str, str, str, date, str]) -> list[str]:
        return [each.run_id for each in raw_store.sealed(besides=besides)]

    assert left() == [OLDER, RUN]
    assert left((*absent, OLDER), (*name, OLDER)) == [RUN]
    assert left((*name, RUN)) == [OLDER]
    assert left((*name, OLDER), (*name, RUN)) == []
