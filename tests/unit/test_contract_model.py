"""Contracts and queries: what they refuse, and what their hashes tell apart."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sealbook.errors import InvalidInput
from sealbook.model import Severity
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import (
    RESERVED_COLUMNS,
    Column,
    Contract,
    Query,
    RowCount,
    Rule,
    check_schema_version,
)

CONTRACT = Contract(
    query_name="campaign_daily",
    schema_version="1",
    columns=(
        Column("campaign_id", ColumnType.BIGINT, required=True),
        Column("segments_date", ColumnType.DATE),
        Column("day_text", ColumnType.STRING),
    ),
    primary_key=("campaign_id",),
    date_column="segments_date",
    rules=(Rule("positive", "campaign_id > 0"),),
)
QUERY = Query("google_ads", "campaign_daily", "SELECT campaign.id FROM campaign", "1", {"1": CONTRACT})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"query_name": "Campaign"}, "query_name"),
        ({"schema_version": ""}, "schema_version"),
        ({"schema_version": "a/b"}, "schema_version"),
        ({"columns": ()}, "columns"),
        ({"columns": (*CONTRACT.columns, Column("campaign_id", ColumnType.INT))}, "columns"),
        ({"primary_key": ("nope",)}, "primary_key"),
        ({"primary_key": ("campaign_id", "campaign_id")}, "primary_key"),
        ({"date_column": "nope"}, "date_column"),
        ({"date_column": "campaign_id"}, "date_column"),
        ({"rules": CONTRACT.rules * 2}, "rules"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(CONTRACT, **changes)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "name", ["", "Clicks", "1st", "_x", "a-b", "a.b", "a b", "é", "a" * 129, *RESERVED_COLUMNS]
)
def test_column_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="column"):
        Column(name, ColumnType.INT)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Positive"}, "rule"),
        ({"expression": " "}, "rule positive expression"),
        ({"max_share": -0.01}, "rule positive max_share"),
        ({"max_share": 1.01}, "rule positive max_share"),
        ({"max_share": float("nan")}, "rule positive max_share"),
        ({"max_share": Decimal("1e-19")}, "rule positive max_share"),
        ({"max_share": Decimal("1e-999999999")}, "rule positive max_share"),
        ({"max_share": Decimal("0." + "1" * 40)}, "rule positive max_share"),
        ({"max_count": -1}, "rule positive max_count"),
    ],
)
def test_rules(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(CONTRACT.rules[0], **changes)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "bounds",
    [
        {"min": -1},
        {"max": -1},
        {"min_ratio": -0.1},
        {"last": 0},
        {"min": 2, "max": 1},
        {"min_ratio": 2, "max_ratio": 1},
    ],
)
def test_row_counts(bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="row_count"):
        RowCount(**bounds)


def test_a_float_stands_for_the_decimal_that_was_written() -> None:
    """0.29 is less than 29 hundredths as a float; nobody who writes it means that."""
    assert replace(CONTRACT.rules[0], max_share=0.29).max_share == Decimal("0.29")  # type: ignore[arg-type]
    assert RowCount(min_ratio=Decimal("0.50")) == RowCount(min_ratio=Decimal("0.5"))


@pytest.mark.parametrize("text", ["", " ", ".1", "-1", "_1", "a/b", "a b", "é", "1" * 64, None, 1, 1.0])
def test_schema_versions_can_be_part_of_a_path(text: object) -> None:
    with pytest.raises(InvalidInput, match="schema_version"):
        check_schema_version(text)


@pytest.mark.parametrize("text", ["1", "v1", "2026-01-01", "1.10", "a_b", "1" * 63])
def test_good_schema_versions(text: str) -> None:
    check_schema_version(text)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "Google"}, "source"),
        ({"name": ""}, "query_name"),
        ({"text": "\n"}, "query campaign_daily text"),
        ({"schema_version": "2"}, "query campaign_daily schema_version"),
        ({"contracts": {}}, "query campaign_daily schema_version"),
    ],
)
def test_queries(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(QUERY, **changes)
    assert caught.value.field == field


@pytest.mark.parametrize("date_column", [None, "segments_date", "day_text"])
def test_a_date_column_is_a_date_or_text(date_column: str | None) -> None:
    assert replace(CONTRACT, date_column=date_column).date_column == date_column


def test_the_hash_is_the_same_in_every_process() -> None:
    """R-VER-2: it is stored as part of the validator version, so it must never drift."""
    assert CONTRACT.hash == replace(CONTRACT).hash
    assert CONTRACT.hash == "e0b557e326f580320cce45df36883fb09434f947b92e04430e29c6c4225ff81d"


def test_the_hash_is_that_of_books_whose_numbers_were_floats() -> None:
    """R-WH-7: contracts in their ledgers are found by it; only a number that no float says has another."""
    bounds = RowCount(min_ratio=Decimal("0.5"), max_ratio=Decimal(3))
    rule = replace(CONTRACT.rules[0], max_share=Decimal("0.01"))
    assert replace(CONTRACT, rules=(rule,), row_count=bounds).hash == (
        "60c0c2c5808dcc7ed6a600c50b1d290922881d18b321cac9a3b30513ea91f091"
    )
    longer = replace(rule, max_share=Decimal("0.010000000000000001"))
    assert float(longer.max_share) == float(rule.max_share)
    assert (
        replace(CONTRACT, rules=(longer,), row_count=bounds).hash
        != replace(CONTRACT, rules=(rule,), row_count=bounds).hash
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"query_name": "other"},
        {"schema_version": "2"},
        {"columns": CONTRACT.columns[:2]},
        {"columns": (CONTRACT.columns[1], CONTRACT.columns[0], CONTRACT.columns[2])},
        {"columns": (replace(CONTRACT.columns[0], required=False), *CONTRACT.columns[1:])},
        {"columns": (replace(CONTRACT.columns[0], type=ColumnType.INT), *CONTRACT.columns[1:])},
        {"primary_key": ()},
        {"date_column": None},
        {"rules": ()},
        {"rules": (replace(CONTRACT.rules[0], expression="campaign_id >= 0"),)},
        {"rules": (replace(CONTRACT.rules[0], severity=Severity.WARN),)},
        {"rules": (replace(CONTRACT.rules[0], max_share=Decimal("0.1")),)},
        {"rules": (replace(CONTRACT.rules[0], max_count=1),)},
        {"allow_empty": True},
        {"strict": True},
        {"row_count": RowCount(min=1)},
        {"row_count": RowCount(last=6)},
    ],
)
def test_whatever_a_contract_says_is_in_its_hash(changes: dict[str, Any]) -> None:
    assert replace(CONTRACT, **changes).hash != CONTRACT.hash


def test_the_hash_of_a_query_is_that_of_its_text() -> None:
    assert replace(QUERY, api_version="v26").hash == QUERY.hash
    assert replace(QUERY, text=QUERY.text + " ").hash != QUERY.hash
