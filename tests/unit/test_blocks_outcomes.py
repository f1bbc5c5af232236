"""What becomes of each kind of line, as docs/reference/validation.md promises (R-VER-1)."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column
from sealbook.rows.blocks import Block, Part
from sealbook.rows.offending import EXTRA_COLUMNS, JSON, REQUIRED, TYPES, OffendingLines
from sealbook.rows.parser import RowParser

COLUMNS = (
    Column("id", ColumnType.BIGINT, required=True),
    Column("name", ColumnType.STRING),
    Column("active", ColumnType.BOOLEAN),
    Column("small", ColumnType.INT),
    Column("ratio", ColumnType.FLOAT),
    Column("cost", ColumnType.DOUBLE),
    Column("day", ColumnType.DATE),
    Column("at", ColumnType.TIMESTAMP),
)
GOOD = b'{"id": 1, "name": "a"}'


NO_TIMESTAMPS = (
    b"2026-01-01T25:00:00Z",
    b"2026-01-01T24:00:00Z",
    b"2026-01-01T00:60:00Z",
    b"2026-01-01T00:00:60Z",
    b"2016-12-31T23:59:60Z",
    b"2026-01-01T00:00:00+02:60",
    b"2026-01-01T00:00:00+02:99",
    b"2026-01-01T00:00:00+24:00",
    b"2026-01-01T00:00:00+0200",
    b"2026-01-01T00:00:00+02",
    b"2026-01-01T00:00:00.Z",
    b"2026-01-01T00:00Z",
    b"2026-02-30T00:00:00Z",
    b"0000-01-01T00:00:00Z",
    b"0001-01-01T00:00:00+00:01",
    b"9999-12-31T23:59:59-00:01",
    b"2026-01-01T00:00:00 Z",
    b"2026-01-01T00:00:00Zz",
)


def parse(*lines: bytes) -> tuple[Block, Part]:
    block = RowParser(COLUMNS).parse([b"".join(line + b"\n" for line in lines)])
    [part] = block.parts
    return block, part


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "a blank line"),
        (b" \t ", "a blank line"),
        (b'{"id": 1', "not JSON"),
        (b'{"id": 1,}', "not JSON"),
        (b"{'id': 1}", "not JSON"),
        (b'{"id": 01}', "not JSON"),
        (b'{"id": 1} x', "not JSON"),
        (b'{"id": 1}{"id": 2}', "not JSON"),
        (b'{"id": 1}, {"id": 2}', "not JSON"),
        (b'{"id": 1, "name": "a\tb"}', "not JSON"),
        (b'{"id": 1, "cost": NaN}', "not JSON"),
        (b'{"id": 1, "cost": Infinity}', "not JSON"),
        (b'{"id": 1, "more": NaN}', "not JSON"),
        (b'\xef\xbb\xbf{"id": 1}', "not JSON"),
        (b'{"id": 1, "name": "\xff"}', "not UTF-8"),
        (b'{"id": 1, "more": "\xff"}', "not UTF-8"),
        (b'{"id": 1, "name": "\\ud800"}', "not Unicode"),
        (b"[1]", "an array instead of an object"),
        (b"null", "null instead of an object"),
        (b"1", "a number instead of an object"),
        (b'"a"', "a string instead of an object"),
        (b"true", "a boolean instead of an object"),
        (b'{"id": 1, "id": 1}', "id is given twice"),
        (b'{"id": 1, "name": null, "name": "a"}', "name is given twice"),
        (b'{"id": 1, "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested more than 100 deep"),
        (b'{"id": 1, "more": ' + b"[" * 100 + b"]" * 100 + b"}", "nested more than 100 deep"),
        (b'{"id": 1, "name": ' + b"[" * 100 + b"]" * 100 + b"}", "nested more than 100 deep"),
    ],
)
def test_a_line_that_is_no_json_object_is_no_row(line: bytes, reason: str) -> None:
    block, part = parse(GOOD, line, GOOD)

    assert part.offending == {JSON: OffendingLines(1, [2], [reason])}
    assert block.table.num_rows == part.rows == 2
    assert block.line_numbers.to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (b'"id": "1"', "id is a string, not bigint"),
        (b'"id": 9223372036854775808', "id is out of range for bigint"),
        (b'"id": 1' + b"0" * 5_000, "id is out of range for bigint"),
        (b'"id": 1.0', "id is a fraction, not bigint"),
        (b'"id": 1e2', "id is a fraction, not bigint"),
        (b'"id": true', "id is a boolean, not bigint"),
        (b'"small": 2147483648', "small is out of range for int"),
        (b'"name": 1', "name is a number, not string"),
        (b'"name": {"a": 1}', "name is an object, not string"),
        (b'"name": [1]', "name is an array, not string"),
        (b'"active": 1', "active is a number, not boolean"),
        (b'"active": "true"', "active is a string, not boolean"),
        (b'"ratio": 1e39', "ratio is out of range for float"),
        (b'"ratio": 1' + b"0" * 39, "ratio is out of range for float"),
        (b'"ratio": -1' + b"0" * 39, "ratio is out of range for float"),
        (b'"ratio": 1' + b"0" * 5_000, "ratio is out of range for float"),
        (b'"ratio": 340282356779733661637539395458142568448', "ratio is out of range for float"),
        (b'"cost": 1e309', "cost is out of range for double"),
        (b'"cost": 1' + b"0" * 309, "cost is out of range for double"),
        (b'"cost": 1e99999999999999999999', "cost is out of range for double"),
        (b'"small": 0e999', "small is a fraction, not int"),
        (b'"cost": "1"', "cost is a string, not double"),
        (b'"day": 20260101', "day is a number, not date"),
        (b'"day": "2026-02-30"', "day is text, but no date"),
        (b'"day": "20260101"', "day is text, but no date"),
        (b'"at": "2026-01-01"', "at is text, but no timestamp"),
        *((b'"at": "' + text + b'"', "at is text, but no timestamp") for text in NO_TIMESTAMPS),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_column(member: bytes, reason: str) -> None:
    prefix = b"" if member.startswith(b'"id"') else b'"id": 1, '
    block, part = parse(GOOD, b"{" + prefix + member + b"}", GOOD)

    assert part.offending == {TYPES: OffendingLines(1, [2], [reason])}
    assert block.line_numbers.to_pylist() == [1, 3]


def test_values_that_fit_are_kept_exactly() -> None:
    line = (
        b'{"id": -9223372036854775808, "name": "\\u00e9 \\u0000 \xf0\x9f\x98\x80", "active": false,'
        b' "small": -0, "ratio": 0.5, "cost": 12345678901234567890, "day": "2026-01-31",'
        b' "at": "2026-01-01 10:00:00.5-02:00"}'
    )
    block, part = parse(line, b'{"id": 2, "at": "2026-01-01T00:00:00"}')

    assert not part.offending
    first, second = block.table.to_pylist()
    assert first == {
        "id": -(2**63),
        "name": "é \0 😀",
        "active": False,
        "small": 0,
        "ratio": 0.5,
        "cost": 1.2345678901234567e19,
        "day": date(2026, 1, 31),
        "at": datetime(2026, 1, 1, 12, 0, 0, 500_000, UTC),
    }
    assert second["at"] == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (b"2026-01-01t10:00:00z", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (b"2026-01-01T10:00:00.1234567Z", datetime(2026, 1, 1, 10, 0, 0, 123_456, UTC)),
        (b"2026-01-01T23:59:59.999999999999Z", datetime(2026, 1, 1, 23, 59, 59, 999_999, UTC)),
        (b"2026-01-01T10:00:00.5-00:00", datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC)),
        (b"2026-01-01T10:00:00+23:59", datetime(2025, 12, 31, 10, 1, tzinfo=UTC)),
        (b"0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        (b"9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
    ],
)
def test_a_timestamp_as_rfc_3339_has_it(text: bytes, moment: datetime) -> None:
    """Digits beyond microseconds are cut off."""
    block, part = parse(b'{"id": 1, "at": "' + text + b'"}')

    assert not part.offending
    assert block.table.column("at").to_pylist() == [moment]


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (b"0e999", "0.0"),
        (b"-0e999", "-0.0"),
        (b"0.0e400", "0.0"),
        (b"0e99999999999999999999", "0.0"),
        (b"1e-99999999999999999999", "0.0"),
    ],
)
def test_a_zero_is_a_zero_whatever_its_exponent(number: bytes, value: str) -> None:
    lines = [b'{"id": 1, "cost": ' + number + b', "ratio": ' + number + b', "name": "a", "more": 1}', GOOD]
    block, part = parse(*lines)

    assert part.offending == {EXTRA_COLUMNS: OffendingLines(1, [1], ["more"])}
    first = block.table.to_pylist()[0]
    assert (str(first["cost"]), str(first["ratio"]), first["name"]) == (value, value, "a")


def test_the_greatest_float_is_taken_and_rounded_as_ever() -> None:
    """Beside a number that only the exact look takes: it changes no other value."""
    numbers = [b"340282356779733661637539395458142568447.9", b"0.1", b"16777217.0000001", b"0e999"]
    block, part = parse(*(b'{"id": 1, "ratio": ' + number + b"}" for number in numbers))

    assert not part.offending
    quick, _ = parse(*(b'{"id": 1, "ratio": ' + number + b"}" for number in numbers[:-1]))
    assert block.table.column("ratio").to_pylist()[:-1] == quick.table.column("ratio").to_pylist()


@pytest.mark.parametrize("line", [b'{"id": null}', b"{}", b'{"name": "a"}'])
def test_a_required_column_without_a_value_is_a_flaw_of_a_row(line: bytes) -> None:
    block, part = parse(GOOD, line)

    assert part.offending == {REQUIRED: OffendingLines(1, [2], ["id"])}
    assert block.table.num_rows == 2


def test_extra_columns_are_named_and_left_out() -> None:
    block, part = parse(GOOD, b'{"id": 2, "more": {"a": [1, null]}, "\\u0000": 1, "": 2}')

    assert part.offending == {EXTRA_COLUMNS: OffendingLines(1, [2], ["''", "'\\x00'", "more"])}
    assert block.table.column_names == [column.name for column in COLUMNS]


@pytest.mark.parametrize("number", [b"1e400", b"0e999", b"1" + b"0" * 400])
def test_a_number_that_no_column_wants_may_be_any(number: bytes) -> None:
    _, part = parse(GOOD, b'{"id": 1, "more": ' + number + b"}")

    assert part.offending == {EXTRA_COLUMNS: OffendingLines(1, [2], ["more"])}


def test_extra_columns_count_on_every_line_that_is_an_object() -> None:
    """R-VER-2: also where a value is of the wrong type, whether the parser or the calendar refuses it."""
    _, part = parse(
        b'{"id": 1, "more": 1}',
        b'{"id": "x", "more": 1}',
        b'{"id": 3, "day": "2026-02-30", "more": 1}',
        b'{"more": 1',
        b'{"id": 5, "id": 5, "more": 1}',
    )

    assert part.offending[EXTRA_COLUMNS] == OffendingLines(3, [1, 2, 3], ["more"])
    assert part.offending[TYPES].lines == [2, 3]
    assert part.offending[JSON].lines == [4, 5]


def test_a_line_of_the_wrong_type_is_not_asked_for_its_required_columns() -> None:
    _, part = parse(b'{"small": "x"}', b'{"small": 1}', b'{"day": "2026-02-30"}')

    assert part.offending[TYPES].lines == [1, 3]
    assert part.offending[REQUIRED].lines == [2]


def test_nesting_is_counted_outside_of_texts() -> None:
    _, part = parse(
        GOOD,
        b'{"id": 1, "name": "' + b"[" * 200 + b'\\" {", "more": ' + b"[[]," * 60 + b"1" + b"]" * 60 + b"}",
    )

    assert part.offending == {EXTRA_COLUMNS: OffendingLines(1, [2], ["more"])}


def test_a_repeated_extra_column_is_nobodys_business() -> None:
    _, part = parse(b'{"id": 1, "more": 1, "more": 2}')

    assert part.offending == {EXTRA_COLUMNS: OffendingLines(1, [1], ["more"])}


def test_whitespace_around_an_object_is_no_fault() -> None:
    block, part = parse(b"  " + GOOD + b"\t", GOOD + b" \r", b'{ "id" :\t3 }')

    assert not part.offending
    assert block.table.column("id").to_pylist() == [1, 1, 3]


@pytest.mark.parametrize(
    ("payload", "lines"),
    [
        (b"", 0),
        (GOOD, 1),
        (GOOD + b"\n", 1),
        (GOOD + b"\r\n" + GOOD + b"\r\n", 2),
        (GOOD + b"\r\n" + GOOD, 2),
        (GOOD + b"\r", 1),
    ],
)
def test_line_ends_are_newlines_with_or_without_a_carriage_return(payload: bytes, lines: int) -> None:
    [part] = RowParser(COLUMNS).parse([payload]).parts

    assert (part.lines, part.rows, part.offending) == (lines, lines, {})


def test_lone_carriage_returns_end_no_line() -> None:
    [part] = RowParser(COLUMNS).parse([GOOD + b"\r" + GOOD]).parts

    assert part.offending == {JSON: OffendingLines(1, [1], ["not JSON"])}


def test_a_line_of_ten_megabytes_is_a_line() -> None:
    text = "x" * 10_000_000
    block, part = parse(
        GOOD, b'{"id": 2, "name": "' + text.encode() + b'"}', b"[" + b"1," * 5_000_000 + b"1]", GOOD
    )

    assert part.offending == {JSON: OffendingLines(1, [3], ["an array instead of an object"])}
    assert block.table.column("name")[1].as_py() == text


def test_each_line_counts_once_and_the_first_five_are_named() -> None:
    """R-VER-2."""
    lines = [GOOD, *[b'{"id": "1", "small": "2", "name": 3}'] * 200, GOOD]
    block, part = parse(*lines)

    found = part.offending[TYPES]
    assert (found.count, found.lines) == (200, [2, 3, 4, 5, 6])
    assert found.reasons == [
        "id is a string, not bigint",
        "name is a number, not string",
        "small is a string, not int",
    ]
    assert block.line_numbers.to_pylist() == [1, 202]


def test_a_few_bad_lines_among_many_are_found() -> None:
    lines = [GOOD] * 10_000
    for number in (1, 4_321, 10_000):
        lines[number - 1] = b"oops"
    block, part = parse(*lines)

    assert part.offending == {JSON: OffendingLines(3, [1, 4_321, 10_000], ["not JSON"])}
    assert block.table.num_rows == 9_997


def test_parts_know_their_rows() -> None:
    block = RowParser(COLUMNS).parse([b"", GOOD + b"\n" + GOOD, b"oops\n", GOOD])

    assert [(part.lines, part.rows) for part in block.parts] == [(0, 0), (2, 2), (1, 0), (1, 1)]
    assert block.part_numbers.to_pylist() == [1, 1, 3]
    assert block.line_numbers.to_pylist() == [1, 2, 1]
