"""A large payload is read in slices: each line in exactly one, wherever the cuts fall."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealbook.errors import SealbookError
from sealbook.raw import RawStore
from sealbook.rows.problems import CorruptPayload, Unreadable
from sealbook.rows.units import Digest, Reading, Slice, Unit, UnitReader
from tests.support.validation import RUN, encoded, key, payload_file, rows, seal


def read(root: Path, *units: Unit, attempt: int = 0, tries: int = 1) -> list[Reading]:
    return list(UnitReader(RawStore.open(root), "1", tries).read_all(units, attempt))


def slices(size: int, most: int) -> list[Slice]:
    starts = range(0, size, most)
    return [Slice(0, key(), RUN, piece, start, min(start + most, size)) for piece, start in enumerate(starts)]


@given(
    st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.integers(1, 9)
)
@example([b"", b"", b""], 1)
@example([b"a" * 20, b"b"], 3)
def test_slices_together_are_the_payload(lines: list[bytes], most: int) -> None:
    payload = b"\n".join(lines)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        seal(root, key(), payload)
        found = [each.data for each in read(root, *slices(len(payload), most))]
    assert b"".join(found) == payload
    ends = [data for data in found if data]
    assert all(data.endswith(b"\n") for data in ends[:-1])


def test_a_line_longer_than_a_slice_belongs_to_where_it_begins(tmp_path: Path) -> None:
    seal(tmp_path, key(), b"aa\n" + b"b" * 100 + b"\ncc\n")

    found = [each.data for each in read(tmp_path, *slices(107, 10))]

    assert found == [b"aa\n" + b"b" * 100 + b"\n", *[b""] * 9, b"cc\n"]


def test_the_digest_of_a_large_payload_needs_no_lines(tmp_path: Path) -> None:
    seal(tmp_path, key(), encoded(rows(3)))

    [found] = read(tmp_path, Digest(0, key(), RUN))

    assert found.problem is None
    assert (found.data, found.record_count) == (b"", 3)


def test_a_payload_that_differs_from_its_seal_is_told_apart(tmp_path: Path) -> None:
    """R-VER-1: bytes and digest agree, or nothing in the payload counts."""
    for customer in ("cut", "changed", "gone"):
        seal(tmp_path, key(customer), encoded(rows(3)))
    whole = payload_file(tmp_path, key("cut")).read_bytes()
    payload_file(tmp_path, key("cut")).write_bytes(whole[:-1])
    payload_file(tmp_path, key("changed")).write_bytes(b" " + whole[1:])
    payload_file(tmp_path, key("gone")).unlink()

    found = read(tmp_path, *(Unit(0, key(customer), RUN) for customer in ("cut", "changed", "gone")))

    sealed = len(whole), sha256(whole).hexdigest()
    assert [each.data for each in found] == [b""] * 3
    assert [each.problem for each in found] == [
        CorruptPayload(*sealed, size=len(whole) - 1, sha256=sha256(whole[:-1]).hexdigest()),
        CorruptPayload(*sealed, size=len(whole), sha256=sha256(b" " + whole[1:]).hexdigest()),
        CorruptPayload(*sealed),
    ]


def test_a_file_that_is_away_for_a_moment_is_read_all_the_same(tmp_path: Path) -> None:
    """What is not there at once is looked for again, after the others of the task."""
    for customer in ("here", "away"):
        seal(tmp_path, key(customer), encoded(rows(3)))
    file = payload_file(tmp_path, key("away"))
    away = file.rename(file.with_name("away"))
    units = [Unit(number, key(customer), RUN) for number, customer in enumerate(("away", "here"))]
    readings = UnitReader(RawStore.open(tmp_path), "1", tries=1).read_all(units, 0)

    assert next(readings).unit == units[1]
    away.rename(file)
    [late] = list(readings)

    assert late.problem is None
    assert late.data == file.read_bytes()


def test_an_unreadable_payload_fails_the_task_until_its_last_try(tmp_path: Path) -> None:
    """R-VER-4: then it is set aside, and its neighbours are read."""
    for customer in ("good", "bad"):
        seal(tmp_path, key(customer), encoded(rows(3)))
    file = payload_file(tmp_path, key("bad"))
    file.unlink()
    file.mkdir()  # reading a folder fails, and not as something missing does
    units = [Unit(number, key(customer), RUN) for number, customer in enumerate(("bad", "good"))]

    readings = UnitReader(RawStore.open(tmp_path), "1", tries=2).read_all(units, 0)
    assert next(readings).problem is None
    with pytest.raises(SealbookError, match=str(file.relative_to(tmp_path))):
        next(readings)
    found = read(tmp_path, *units, attempt=1, tries=2)
    assert [each.unit.ordinal for each in found] == [1, 0]
    assert [type(each.problem) for each in found] == [type(None), Unreadable]
