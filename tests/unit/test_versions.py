"""Which version of a query a day is fetched by, and which columns of its versions are one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from sealbook.errors import InvalidInput
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query
from sealbook.model.versions import Term
from sealbook.read.schema import own_names, reconcile

MARCH, MAY = date(2026, 3, 1), date(2026, 5, 1)


def contract(version: str, *names: str, **renamed: str) -> Contract:
    """Return a contract with some columns, and others that were renamed."""
    columns = [Column(name, ColumnType.INT) for name in names]
    columns += [Column(name, ColumnType.BIGINT, renamed_from=before) for name, before in renamed.items()]
    return Contract("orders", version, tuple(columns))


def query(present: str, *contracts: Contract, **terms: Term) -> Query:
    by_version = {each.schema_version: each for each in contracts}
    named = {name.removeprefix("v"): term for name, term in terms.items()}
    return Query("demo", "orders", "select", present, by_version, terms=named)


THREE = [contract(version, "a") for version in "123"]


def test_a_day_is_fetched_by_the_version_that_holds_then() -> None:
    """R-VER-7: with its own text where it has one, else with that of the query."""
    asked = query("3", *THREE, v1=Term(text="old"), v3=Term(MAY), v2=Term(MARCH, "new"))
    for day, version, text in (
        (date(2026, 2, 28), "1", "old"),
        (MARCH, "2", "new"),
        (date(2026, 4, 30), "2", "new"),
        (MAY, "3", "select"),
        (date.max, "3", "select"),
    ):
        found = asked.on(day)
        assert (found.schema_version, found.text) == (version, text)
        assert found.hash == replace(asked, text=text).hash
        assert found.on(date.min) == found


def test_without_valid_from_every_day_is_of_the_present_version() -> None:
    assert query("2", *THREE).on(date.min).schema_version == "2"
    assert query("2", *THREE, v1=Term(), v2=Term(), v3=Term()).on(MAY).schema_version == "2"


def test_of_versions_from_the_same_day_on_the_present_or_the_last_written_holds() -> None:
    same = query("3", *THREE, v3=Term(MAY), v2=Term(MAY), v1=Term())
    assert [each.schema_version for each in same.spans] == ["1", "3"]
    given_up = query("3", *THREE, v1=Term(), v2=Term(), v3=Term(MAY))
    assert given_up.on(MARCH).schema_version == "2"


def test_hashes_of_contracts_without_renames_are_what_they_were() -> None:
    """A contract that was in force before there were renames is still in force."""
    assert contract("1", "a").hash == "dd9f1440d944de0e8883ea7af81d8e941e985876452e917d1c500c78db4486ea"
    assert contract("1", b="a").hash != contract("1", b="c").hash
    assert contract("1", b="a").shape == contract("1", b="c").shape


def test_columns_that_were_renamed_are_one_over_any_number_of_versions() -> None:
    """R-WH-6, R-CON-6: by the name of the present version, and as wide as it must be."""
    one, two, three = contract("1", "a", "x"), contract("2", "y", b="a"), contract("3", c="b")
    asked = query("3", one, two, three)
    assert list(reconcile(asked))[5:] == ["c", "x", "y"]
    assert reconcile(asked, ["c"]) == {"c": ColumnType.BIGINT}
    assert own_names(asked) == {"1": {"c": "a"}, "2": {"c": "b"}}
    assert list(reconcile(query("1", one, two, three), ["a"])) == ["a"]
    gone = query("4", one, two, three, contract("4", "z"))
    assert list(reconcile(gone))[5:] == ["z", "c", "x", "y"]


def test_a_name_may_come_back_for_the_same_column() -> None:
    back = query("3", contract("1", "a"), contract("2", b="a"), contract("3", a="b"))
    assert own_names(back) == {"2": {"a": "b"}}


def test_the_old_name_of_a_column_says_the_new_one() -> None:
    asked = query("2", contract("1", "a"), contract("2", b="a"))
    with pytest.raises(InvalidInput, match="column 'a' is not valid: expected b"):
        reconcile(asked, ["a"])


def test_a_name_that_was_used_for_something_else_is_refused() -> None:
    with pytest.raises(InvalidInput, match="makes one column of a and b, which version '2' has both"):
        query("2", contract("1", "a"), contract("2", "a", b="a"))
