"""Decimals and nested columns: what is said of values that do not fit, whatever their neighbours are."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column
from sealbook.rows.offending import EXTRA_COLUMNS, JSON, TYPES
from sealbook.rows.parser import RowParser

BROKEN = b"no JSON\n"
"""With such a neighbour every line is looked at alone."""


def parse(kind: str, *values: str, among: bytes = b"") -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a column that are of its type, and what is wrong with the lines."""
    lines = b"".join(b'{"v":%s}\n' % value.encode() for value in values) + among
    block = RowParser([Column("v", ColumnType(kind))]).parse([lines])
    wrong = {name: (found.lines, found.reasons) for name, found in block.parts[0].offending.items()}
    return block.table.column("v").to_pylist(), wrong


@pytest.mark.parametrize("among", [b"", BROKEN])
@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("decimal(5,2)", "1000", "v is out of range for decimal(5,2)"),
        ("decimal(5,2)", "1.005", "v is finer than decimal(5,2)"),
        ("decimal(5,2)", '"1,5"', "v is text, but no decimal(5,2)"),
        ("decimal(5,2)", "true", "v is a boolean, not decimal(5,2)"),
        ("decimal(5,2)", f'"1e{"9" * 5000}"', "v is out of range for decimal(5,2)"),
        ("decimal(5,2)", f'"1e-{"9" * 5000}"', "v is finer than decimal(5,2)"),
        ("array<int>", "{}", "v is an object, not array<int>"),
        ("array<int>", '[1,"2"]', "v[] is a string, not int"),
        ("array<array<bigint>>", "[[1.5]]", "v[][] is a fraction, not bigint"),
        ("map<string,date>", "[]", "v is an array, not map<string,date>"),
        ("map<string,date>", '{"a":"2026-02-30"}', "v{} is text, but no date"),
        ("map<string,int>", '{"a":1,"a":2}', "v gives a name twice"),
        ("struct<a:int,b:struct<c:boolean>>", '{"b":{"c":0}}', "v.b.c is a number, not boolean"),
        ("struct<a:int>", '"x"', "v is a string, not struct<a:int>"),
        ("array<struct<p:decimal(3,1)>>", '[{"p":1.25}]', "v[].p is finer than decimal(3,1)"),
    ],
)
def test_the_reason_names_the_part_that_does_not_fit(
    kind: str, value: str, reason: str, among: bytes
) -> None:
    """R-VER-2."""
    rows, wrong = parse(kind, "null", value, among=among)
    assert rows == [None]
    assert wrong[TYPES] == ([2], [reason])


@pytest.mark.parametrize("among", [b"", BROKEN])
def test_decimals_are_exact_however_they_are_written(among: bytes) -> None:
    values = ["1.5", '"1.500"', "15e-1", "1.50", '"+001.5"', "0e999", f"0e{'9' * 5000}"]
    rows, wrong = parse("decimal(3,2)", *values, among=among)
    assert list(map(str, rows)) == ["1.50"] * 5 + ["0.00"] * 2
    assert TYPES not in wrong
    widest = "1" * 28 + "." + "2" * 10
    assert parse("decimal(38,10)", f'"{widest}"', among=among)[0] == [Decimal(widest)]
    assert parse("array<decimal(38,10)>", f"[{widest}]", among=among)[0] == [[Decimal(widest)]]


@pytest.mark.parametrize("among", [b"", BROKEN, b'{"v":"\\ud83d\\ude00"}\n', b'{"v":1,"n":0e999}\n'])
def test_json_is_kept_as_it_is_written(among: bytes) -> None:
    values = ['{ "b":1.0,"a" : [1e400] }', '"\\u00e9\\/"', "[]", "true", '{"a":1,"a":2}', '"é"', '{"v":1}']
    rows, _ = parse("json", *values, "null", among=among)
    assert rows[: len(values) + 1] == [*values, None]


@pytest.mark.parametrize("among", [b"", BROKEN])
def test_members_besides_those_of_a_struct_are_extra_columns(among: bytes) -> None:
    kind = "array<struct<a:int,b:map<string,struct<c:int>>>>"
    values = ['[{"a":1,"x":2},{"x":3}]', '[{"b":{"k":{"c":1,"y":{}}}}]', "[{}]", "1"]
    rows, wrong = parse(kind, *values, among=among)
    assert wrong[EXTRA_COLUMNS] == ([1, 2], ["v[].b{}.y", "v[].x"])
    assert rows[0] == [{"a": 1, "b": None}, {"a": None, "b": None}]
    assert wrong[TYPES][0] == [4]


def test_a_line_counts_once_among_extra_columns_however_many_it_has() -> None:
    parser = RowParser([Column("v", ColumnType("struct<a:int>"))])
    part = parser.parse([b'{"v":{"b":1},"w":1}\n{"v":{"a":1}}\n']).parts[0]
    assert (part.offending[EXTRA_COLUMNS].count, part.offending[EXTRA_COLUMNS].reasons) == (1, ["v.b", "w"])


@pytest.mark.parametrize("second", [b'{"v":[1],"v":[2]}', b'{"v":[1],"\\u0076":[2]}'])
def test_a_nested_column_given_twice_is_no_json_beside_a_line_without_it(second: bytes) -> None:
    parser = RowParser([Column("v", ColumnType("array<int>")), Column("n", ColumnType.INT)])
    part = parser.parse([b'{"n":1}\n' + second + b"\n"]).parts[0]
    assert (part.offending[JSON].lines, part.offending[JSON].reasons) == ([2], ["v is given twice"])


def test_a_name_that_returns_inside_is_no_fault() -> None:
    assert parse("struct<v:int>", '{"v":1}', '{"v":null}') == ([{"v": 1}, {"v": None}], {})


@pytest.mark.parametrize("kind", ["array<string>", "json"])
@pytest.mark.parametrize("value", ['["\\ud800"]', "[NaN]", "[" * 100 + "]" * 100, '["\\x"]'])
def test_what_is_no_json_inside_is_no_json(kind: str, value: str) -> None:
    assert parse(kind, "[]", value)[1][JSON][0] == [2]


def test_times_inside_are_in_utc() -> None:
    rows, _ = parse("array<timestamp>", '["2026-01-01T06:00:00.5+02:00"]')
    assert rows == [[datetime(2026, 1, 1, 4, 0, 0, 500_000, tzinfo=UTC)]]


def test_a_plain_column_given_twice_is_no_json_beside_a_nested_column() -> None:
    columns = [Column("a", ColumnType("int")), Column("v", ColumnType("json"))]
    [part] = RowParser(columns).parse([b'{"a":1,"v":2}\n{"a":1,"a":1}\n']).parts
    assert (part.offending[JSON].lines, part.offending[JSON].reasons) == ([2], ["a is given twice"])
