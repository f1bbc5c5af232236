"""R-WH-6: a read over several schema_versions gives all columns, widened; or names what it cannot."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import ConfigError, InvalidInput, Irreconcilable
from sealbook.model.column_types import SCALARS, ColumnType
from sealbook.model.contract import Query
from sealbook.model.widening import common_type
from sealbook.read.schema import (
    KEY_TYPES,
    all_columns,
    arrow_schema,
    contracts_of,
    reconcilable,
    reconcile,
)
from sealbook.rows.types import arrow_type
from tests.support.published import IRRECONCILABLE, QUERY

INT, BIGINT, FLOAT, DOUBLE = ColumnType.INT, ColumnType.BIGINT, ColumnType.FLOAT, ColumnType.DOUBLE
types = st.sampled_from(SCALARS)


@pytest.mark.parametrize(
    ("several", "common"),
    [
        ({INT, BIGINT}, BIGINT),
        ({FLOAT, DOUBLE}, DOUBLE),
        ({INT, DOUBLE}, DOUBLE),
        ({INT, FLOAT}, DOUBLE),
        ({INT, FLOAT, DOUBLE}, DOUBLE),
        ({BIGINT, DOUBLE}, None),
        ({BIGINT, FLOAT}, None),
        ({INT, BIGINT, DOUBLE}, None),
        ({ColumnType.DATE, ColumnType.TIMESTAMP}, None),
        ({ColumnType.STRING, INT}, None),
        ({ColumnType.STRING, ColumnType.JSON}, ColumnType.STRING),
        ({ColumnType("decimal(5,2)"), ColumnType("decimal(6,1)")}, ColumnType("decimal(7,2)")),
        ({ColumnType("decimal(5,2)"), INT}, ColumnType("decimal(12,2)")),
        ({ColumnType("decimal(38,20)"), BIGINT}, None),
        ({ColumnType("decimal(5,2)"), DOUBLE}, None),
        ({ColumnType("array<int>"), ColumnType("array<bigint>")}, None),
        ({ColumnType("map<string,int>"), ColumnType("struct<a:int>")}, None),
    ],
)
def test_widening_loses_nothing(several: set[ColumnType], common: ColumnType | None) -> None:
    """R-WH-6: int to bigint, float to double; and nothing that would round a value."""
    assert common_type(several) is common


@given(types, types)
def test_the_common_type_holds_the_extreme_values_of_both(one: ColumnType, other: ColumnType) -> None:
    """R-WH-6: Arrow casts each type's extremes to the common one and back without loss."""
    common = common_type([one, other])
    assert common is common_type([other, one])
    extremes = {
        INT: [-(2**31), 2**31 - 1],
        BIGINT: [-(2**63), 2**63 - 1],
        FLOAT: [3.4028234663852886e38, 1.401298464324817e-45],
    }
    for each in (one, other):
        if common is not None and each in extremes:
            values = pa.array(extremes[each], arrow_type(each))
            assert values.cast(arrow_type(common)).cast(arrow_type(each)) == values


def query(*versions: str, present: str | None = None) -> Query:
    """Return a query of some versions; the first is the present one, unless another is named."""
    contracts = {version: IRRECONCILABLE[version] for version in versions}
    return Query("demo", QUERY, "select", present or versions[0], contracts)


def test_one_version_gives_its_own_columns_after_those_of_the_key() -> None:
    assert list(reconcile(query("1"))) == [*KEY_TYPES, "id", "clicks", "share", "at", "day", "old"]


def test_several_versions_give_the_superset_in_the_order_of_the_present_one() -> None:
    """R-WH-6: present version first, then what only others have."""
    schema = reconcile(query("1", "2", present="2"))
    assert list(schema) == [*KEY_TYPES, "id", "name", "clicks", "share", "at", "day", "old"]
    assert [schema[name] for name in ("id", "clicks", "share", "old")] == [
        BIGINT, BIGINT, DOUBLE, ColumnType.BOOLEAN,
    ]  # fmt: skip
    assert arrow_schema(schema).field("logical_date").type == pa.date32()


def test_what_cannot_be_reconciled_is_named() -> None:
    """R-WH-6: query, column, versions and types."""
    with pytest.raises(Irreconcilable) as caught:
        reconcile(query("2", "3"))
    for said in (QUERY, "clicks", "bigint in schema_version 2", "string in schema_version 3"):
        assert said in str(caught.value)
    with pytest.raises(Irreconcilable):
        reconcile(query("2", "3"), ["id", "clicks"])


def test_a_column_that_is_not_asked_for_need_not_be_reconciled() -> None:
    """R-CON-6."""
    both = query("2", "3")
    assert reconcile(both, ["id", "run_id"]) == {"id": BIGINT, "run_id": ColumnType.STRING}
    assert list(reconcilable(both)) == [*KEY_TYPES, "id", "name", "share", "at", "day"]
    assert all_columns(both)["clicks"] is None


@pytest.mark.parametrize("names", ["id", [], ["id", "id"], ["nothing"]])
def test_columns_that_cannot_be_asked_for(names: object) -> None:
    with pytest.raises(InvalidInput):
        reconcile(query("1"), names)  # type: ignore[arg-type]


@given(st.permutations(["1", "2", "3"]))
def test_columns_follow_from_the_query_alone(versions: list[str]) -> None:
    """R-CON-6: not from the order in which its versions stand, but for the present one."""
    schema = reconcile(query(*versions, present="2"), ["id", "name", "old", "share"])
    assert schema == reconcile(query("2", "1", "3"), ["id", "name", "old", "share"])
    assert list(reconcilable(query(*versions, present="2")))[:7] == [*KEY_TYPES, "id", "name"]


@given(st.permutations(["1", "2"]))
def test_the_present_version_comes_first(versions: list[str]) -> None:
    both = query("1", "2", present="2")
    assert [each.schema_version for each in contracts_of(both, versions)] == ["2", "1"]
    assert [each.schema_version for each in contracts_of(both, [])] == ["2", "1"]


def test_a_published_version_without_a_contract_is_named() -> None:
    with pytest.raises(ConfigError, match="schema_version 7"):
        contracts_of(query("1"), ["1", "7"])
