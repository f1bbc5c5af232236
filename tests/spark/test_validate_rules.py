"""What Spark finds wrong with rules, and where it stands; what those that are right read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.config import load_settings
from sealbook.errors import ConfigError
from sealbook.model.contract import Query
from sealbook.validate.contracts import rule_columns, rule_errors
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

RULES = "queries.campaign_daily.contracts.1.rules"


def loaded(folder: Path, *rules: tuple[str, str]) -> Query:
    document = [{"name": name, "expression": expression} for name, expression in rules]
    file = write_book(folder, SETTINGS, changed(CATALOGUE, RULES, document))
    return load_settings(file).sources["google_ads"].queries["campaign_daily"]


def test_each_rule_that_is_wrong_is_named_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    query = loaded(
        tmp_path, ("fine", "campaign_id > 0"), ("broken", "campaign_id >"), ("types", "nowhere > 0")
    )

    broken, name, nowhere = map(str, rule_errors(spark, query))

    file = tmp_path / "config/google_apis.yaml"
    lines = file.read_text().splitlines()
    for index, said, says in (
        (1, broken, "rule broken ('campaign_id >'): it does not parse"),
        (2, name, "rule types ('nowhere > 0'): its name is that of a check"),
        (2, nowhere, "rule types ('nowhere > 0'): there is no column nowhere in the contract"),
    ):
        assert said.startswith(f"{file}: {RULES}[{index}].expression: {says}")
        line = re.search(r"\(line (\d+)\)$", said)
        assert line is not None
        assert query.contracts["1"].rules[index].expression in lines[int(line[1]) - 1]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("sum(campaign_id) > 0", "it has an aggregate, such as a sum or a count: a rule is about one row"),
        ("count(*) > 0", "it has an aggregate, such as a sum or a count: a rule is about one row alone"),
        ("sum(campaign_id) over () > 0", "it has a window function: a rule is about one row alone"),
        ("explode(array(campaign_id)) > 0", "it makes several rows of one: a rule is about one row alone"),
        ("campaign_id in (select 1)", "it has a subquery: a rule is about one row alone"),
        ("campaign_id > (select 1 from other)", "it has a subquery: a rule is about one row alone"),
        ("positive(campaign_id) and is_good(campaign_id)", "Spark has no function is_good"),
        ("campaign_id", "it gives BIGINT, not a boolean"),
        ("rand() < campaign_id", "it is not deterministic"),
        ("1 = 1", "it names no column"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_in_its_own_terms(
    spark: SparkSession, tmp_path: Path, expression: str, problem: str
) -> None:
    [error] = rule_errors(spark, loaded(tmp_path, ("asked", expression)))

    assert f"rule asked ({expression!r}): {problem}" in str(error)
    assert "WHERE" not in str(error)


def test_columns_are_told_only_if_every_rule_is_right(spark: SparkSession, tmp_path: Path) -> None:
    query = loaded(tmp_path, ("one", "segments_date is not null"), ("two", "campaign_id > 0"))
    assert rule_columns(spark, query) == {"1": ("campaign_id", "segments_date")}
    assert list(rule_errors(spark, query)) == []

    wrong = loaded(tmp_path, ("one", "campaign_id > 0"), ("broken", "1 ="), ("worse", "nowhere"))
    with pytest.raises(ConfigError, match=rf"{re.escape(RULES)}\[1\]\.expression: rule broken .* \(line"):
        rule_columns(spark, wrong)


def test_a_query_made_in_code_is_named_instead_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    query = replace(loaded(tmp_path, ("broken", "1 =")), file=None)

    [error] = rule_errors(spark, query)

    assert str(error).startswith("google_ads/campaign_daily contract '1', rule broken ('1 ='): it does")
