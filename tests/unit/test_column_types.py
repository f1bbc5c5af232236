"""Types of columns from their texts, and what is said of texts that are none."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.column_types import (
    SCALARS,
    ArrayType,
    ColumnType,
    DecimalType,
    MapType,
    StructType,
)

SIMPLE = st.sampled_from([str(each) for each in SCALARS if each is not ColumnType.JSON])
DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: f"decimal({precision},{scale})")
)
TEXTS = st.recursive(
    SIMPLE | DECIMALS,
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        inner.map("map<string,{}>".format),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda several: f"struct<{','.join(f'm{place}:{each}' for place, each in enumerate(several))}>"
        ),
    ),
    max_leaves=5,
)


@given(TEXTS)
def test_a_type_is_its_text_and_one_object(text: str) -> None:
    found = ColumnType(text)
    assert found == text
    assert ColumnType(text.replace(",", " ,  ").replace("<", " < ")) is found
    assert pickle.loads(pickle.dumps(found)) is found
    assert copy.deepcopy(found) is found


def test_a_type_tells_what_it_is_made_of() -> None:
    found = ColumnType("array<struct<Price:decimal(10,2),tags:map<string,date>>>")
    assert isinstance(found, ArrayType)
    assert isinstance(found.element, StructType)
    price, tags = found.element.members.values()
    assert list(found.element.members) == ["Price", "tags"]
    assert isinstance(price, DecimalType)
    assert (price.precision, price.scale) == (10, 2)
    assert isinstance(tags, MapType)
    assert tags.value is ColumnType.DATE
    assert ColumnType("decimal(7)") is ColumnType("decimal(7,0)")


def test_what_has_no_one_value_is_nested() -> None:
    nested = ["json", "array<int>", "struct<a:int>", "map<string,int>"]
    assert all(ColumnType(each).is_nested for each in nested)
    assert not any(ColumnType(each).is_nested for each in ("string", "timestamp", "decimal(1,1)"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("integer", "int"),
        ("numeric", "decimal(18,2)"),
        ("decimal", "decimal(18,2)"),
        ("array", "array<string>"),
        ("decimal(39,2)", "decimal(p,s) with p from 1 to 38 and s at most p"),
        ("decimal(2,3)", "decimal(p,s) with p from 1 to 38 and s at most p"),
        ("decimal(a,3)", "decimal(p,s) with two whole numbers, such as decimal(18,2)"),
        ("array<int", "a > at the end"),
        ("array<>", "a type before '>'"),
        ("map<int,int>", "map<string,…>: the names of a JSON object are strings"),
        ("struct<a int>", "a : before 'int'"),
        ("struct<1a:int>", "a letter, then letters, digits and _ instead of '1a'"),
        ("struct<a:int,A:int>", "each member once, in upper or lower case; A is there twice"),
        ("array<json>", "json for a column as a whole, or string"),
        ("int int", "nothing after int"),
        ("array<" * 21 + "int" + ">" * 21, "types that lie at most 20 deep in each other"),
        ("uuid", "one of string, boolean, int, bigint, float, double, date, timestamp, decimal(p,s), "),
        ("int<5>", "one of string, boolean, "),
        ("a$", "one of string, boolean, "),
        ("", "a type at the end"),
    ],
)
def test_what_is_no_type_says_what_to_write(text: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        ColumnType(text)
    assert str(raised.value).startswith(f"type {text!r} is not valid: expected {expected}")
