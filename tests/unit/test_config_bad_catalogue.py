"""A wrong catalogue is refused with an error that names the file, the field and the line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sealbook.config import load_settings
from sealbook.config.documents import error_in
from tests.support.books import CATALOGUE, REMOVED, SETTINGS, changed, refused, write_book

QUERY = CATALOGUE["queries"]["campaign_daily"]
CONTRACT = QUERY["contracts"]["1"]
ADS = {"source": "google_ads", "query": "campaign_daily"}

FIELDS: list[tuple[str, object, str]] = [
    ("source", REMOVED, "the field is missing"),
    ("source", "demo", "'demo' is used as the catalogue of source 'google_ads'"),
    ("source", 1, "expected `str`, got `int`"),
    ("api_version", 26, "expected `str | null`, got `int`"),
    ("version", "1", "there is no such field"),
    ("queries", REMOVED, "the field is missing"),
    ("queries", {}, "there is no query"),
    ("queries", ["campaign_daily"], "expected a mapping, got a list"),
    ("queries", {5: {}}, "a key is not text"),
    ("queries.campaign_daily", None, "expected a mapping, got `null`"),
    ("queries.campaign_daily", "SELECT", "expected a mapping, got `str`"),
    ("queries.Daily", QUERY, "query_name 'Daily' is not valid"),
    ("queries.a/b", QUERY, "query_name 'a/b' is not valid"),
]

QUERY_FIELDS: list[tuple[str, object, str]] = [
    ("text", REMOVED, "the field is missing"),
    ("text", " \n", "query campaign_daily text ' \\n' is not valid"),
    ("text", ["SELECT"], "expected text, or a mapping, got a list"),
    ("sql", "x", "there is no such field"),
    ("schema_version", REMOVED, "the field is missing"),
    ("schema_version", 1, "expected `str`, got `int`"),
    ("schema_version", 1.0, "expected `str`, got `float`"),
    ("schema_version", "2", "query campaign_daily schema_version '2' is not valid"),
    ("contracts", REMOVED, "the field is missing"),
    ("contracts", [], "expected a mapping, got a list"),
    ("contracts", {1: {}}, "a key is not text"),
    ("contracts./1", CONTRACT, "schema_version '/1' is not valid"),
    ("contracts.1", None, "expected a mapping, got `null`"),
]

CONTRACT_FIELDS: list[tuple[str, object, str]] = [
    ("column", {}, "there is no such field"),
    ("columns", REMOVED, "the field is missing"),
    ("columns", {}, "columns () is not valid"),
    ("columns", ["campaign_id"], "expected a mapping, got a list"),
    ("columns.campaign_id", "bigint", "expected a mapping, got `str`"),
    ("columns.campaign_id.type", REMOVED, "the field is missing"),
    ("columns.campaign_id.type", "long", "type 'long' is not valid: expected bigint (line 11)"),
    ("columns.campaign_id.type", 64, "expected `str`, got `int`"),
    ("columns.campaign_id.required", "yes", "expected `bool`, got `str`"),
    ("columns.campaign_id.required", 1, "expected `bool`, got `int`"),
    ("columns.campaign_id.nullable", True, "there is no such field"),
    ("columns.Clicks", {"type": "int"}, "column 'Clicks' is not valid"),
    ("columns.campaign-id", {"type": "int"}, "column 'campaign-id' is not valid"),
    ("columns.run_id", {"type": "string"}, "column 'run_id' is not valid"),
    ("columns.customer_id", {"type": "string"}, "column 'customer_id' is not valid"),
    ("columns.campaign_id.renamed_from", "Id", "column campaign_id renamed_from 'Id' is not valid"),
    (
        "columns.campaign_id.renamed_from",
        "id",
        "renamed_from 'id' is no column of another version: there is no other version",
    ),
    ("text", "  ", "the text is empty"),
    ("valid_from", "2026-02-30", "valid_from '2026-02-30' is not valid"),
    ("primary_key", "campaign_id", "expected a list, got `str`"),
    ("primary_key", ["nope"], "primary_key 'nope' is not valid"),
    ("primary_key", ["campaign_id"] * 2, "primary_key 'campaign_id' is not valid"),
    ("primary_key[0]", 1, "expected `str`, got `int`"),
    ("date_column", "nope", "date_column 'nope' is not valid"),
    ("date_column", "campaign_id", "date_column 'campaign_id' is not valid"),
    ("date_column", ["segments_date"], "expected `str | null`, got a list"),
    ("rules", {"clicks": "x > 0"}, "expected a list"),
    ("rules", CONTRACT["rules"] * 2, "rules 'clicks' is not valid"),
    ("rules[0]", "x > 0", "expected a mapping, got `str`"),
    ("rules[0]", [], "expected a mapping, got a list"),
    ("rules[0].name", REMOVED, "the field is missing"),
    ("rules[0].expression", REMOVED, "the field is missing"),
    ("rules[0].expression", "  ", "rule clicks expression '  ' is not valid"),
    ("rules[0].expression", True, "expected `str`, got `bool`"),
    ("rules[0].max_share", 1.01, "rule clicks max_share 1.01 is not valid"),
    ("rules[0].max_share", -0.1, "rule clicks max_share -0.1 is not valid"),
    ("rules[0].max_share", "1%", "expected a number, got `str`"),
    ("rules[0].max_count", -1, "rule clicks max_count -1 is not valid"),
    ("rules[0].max_count", 1.5, "expected `int`, got `float`"),
    ("rules[0].severity", "fatal", "'fatal' is not one of error, warn"),
    ("rules[0].tolerance", 1, "there is no such field"),
    ("allow_empty", "true", "expected `bool`, got `str`"),
    ("strict", 1, "expected `bool`, got `int`"),
    ("row_count", 5, "expected a mapping, got `int`"),
    ("row_count.minimum", 1, "there is no such field"),
    ("row_count.min", -1, "row_count min -1 is not valid"),
    ("row_count.min", 10, "row_count min 10 is not valid"),
    ("row_count.max", 1.5, "expected `int | null`, got `float`"),
    ("row_count.min_ratio", 3, "row_count min_ratio 3 is not valid"),
    ("row_count.max_ratio", -1, "row_count max_ratio -1 is not valid"),
    ("row_count.last", 0, "row_count last 0 is not valid"),
]

IN_QUERY = "queries.campaign_daily."
IN_CONTRACT = "queries.campaign_daily.contracts.1."
CASES = [
    *FIELDS,
    *((IN_QUERY + field, value, says) for field, value, says in QUERY_FIELDS),
    *((IN_CONTRACT + field, value, says) for field, value, says in CONTRACT_FIELDS),
]


@pytest.mark.parametrize(("field", "value", "says"), CASES)
def test_the_field_is_named(tmp_path: Path, field: str, value: object, says: str) -> None:
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, field, value)))
    assert str(error).startswith(f"{tmp_path}/config/google_apis.yaml: {field}: {says}")
    assert re.search(r" \(line [1-9]\d*\)$", str(error))


def test_a_type_that_yaml_cut_at_its_comma_says_so(tmp_path: Path) -> None:
    file = write_book(tmp_path, SETTINGS, CATALOGUE)
    catalogue = tmp_path / "config/google_apis.yaml"
    text = re.sub(r"(metrics_clicks:)\s+type: double", r"\1 {type: decimal(18,2)}", catalogue.read_text())
    catalogue.write_text(text)
    error = refused(file)
    assert ".metrics_clicks.type: 'decimal(18' breaks off at a comma (line " in str(error)
    assert error.remedy == 'Put the type in quotes, as in "decimal(18,2)".'


OLD = {"columns": {"id": {"type": "int"}, "clicks": {"type": "int"}}}
NEW = {"columns": {"campaign_id": {"type": "int", "renamed_from": "id"}, "clicks": {"type": "int"}}}


@pytest.mark.parametrize(
    ("changes", "field", "says", "remedy"),
    [
        (
            {"2.valid_from": "2026-03-01", "1.valid_from": "2026-01-01"},
            "contracts",
            "query campaign_daily has no version that holds before 2026-01-01",
            "Leave valid_from out of version '1'.",
        ),
        (
            {"1.valid_from": "2026-03-01"},
            "schema_version",
            "query campaign_daily schema_version '2' is not the version of the latest days: '1' holds from",
            "Write schema_version: \"1\", or a later valid_from in '2'.",
        ),
        (
            {"2.columns.campaign_id.renamed_from": "ids"},
            "contracts.2.columns.campaign_id.renamed_from",
            "renamed_from 'ids' is no column of another version: clicks, id",
            "Correct the name, or leave renamed_from out.",
        ),
        (
            {"2.columns.id": {"type": "int"}},
            "contracts.2.columns.campaign_id.renamed_from",
            "renamed_from 'id' makes one column of campaign_id and id, which version '2' has both",
            "Give what is new a name that was never used.",
        ),
    ],
)
def test_versions_that_do_not_go_together(
    tmp_path: Path, changes: dict[str, object], field: str, says: str, remedy: str
) -> None:
    """R-VER-7: the error names the version, the column and what to write."""
    catalogue = changed(CATALOGUE, "queries.campaign_daily.contracts", {"1": OLD, "2": NEW})
    catalogue = changed(catalogue, "queries.campaign_daily.schema_version", "2")
    for below, value in changes.items():
        catalogue = changed(catalogue, f"queries.campaign_daily.contracts.{below}", value)
    error = refused(write_book(tmp_path, SETTINGS, catalogue))
    place = f"{tmp_path}/config/google_apis.yaml: queries.campaign_daily.{field}"
    assert str(error).startswith(f"{place}: {says}")
    assert error.remedy == remedy


UPSTREAMS: list[tuple[str, object, str]] = [
    ("query", REMOVED, "the field is missing"),
    ("query", "nowhere", "there is no query google_ads/nowhere"),
    ("source", "shop", "there is no query shop/campaign_daily"),
    ("days", [0, -7], "days [0, -7] is not valid: expected the first day, then the last one"),
    ("days", [-7], "expected a list of length 2, got 1"),
    ("days", "-7", "expected a list, got `str`"),
    ("days[0]", -367, "expected `int` >= -366"),
    ("days[1]", 367, "expected `int` <= 366"),
    ("days[0]", "-7d", "expected `int`, got `str`"),
    ("customers", "every", "'every' is not one of same, all"),
    ("customer", "all", "there is no such field"),
]


@pytest.mark.parametrize(("field", "value", "says"), UPSTREAMS)
def test_the_field_of_an_upstream_is_named(tmp_path: Path, field: str, value: object, says: str) -> None:
    upstream = {"query": "campaign_daily", "days": [-1, 0]}
    two = changed(CATALOGUE, "queries.other", {**QUERY, "upstreams": [ADS, upstream]})
    error = refused(
        write_book(tmp_path, SETTINGS, changed(two, f"queries.other.upstreams[1].{field}", value))
    )
    place = "queries.other.upstreams[1]"
    named = place if says.startswith("there is no query") else f"{place}.{field}"
    assert str(error).startswith(f"{tmp_path}/config/google_apis.yaml: {named}: {says}")
    assert re.search(r" \(line [1-9]\d*\)$", str(error))


def test_a_circle_of_upstreams_is_shown_with_the_line_of_one(tmp_path: Path) -> None:
    catalogue = changed(CATALOGUE, "queries.other", {**QUERY, "upstreams": [{"query": "campaign_daily"}]})
    catalogue = changed(catalogue, "queries.campaign_daily.upstreams", [{"query": "other", "days": [-7, -1]}])
    error = refused(write_book(tmp_path, SETTINGS, catalogue))
    assert "upstreams go round in a circle: google_ads/" in str(error)
    assert "google_ads/other → google_ads/campaign_daily" in str(error)
    assert re.search(r"upstreams\[0\]: .* \(line [1-9]\d*\)$", str(error))
    assert error.remedy == "Take one of them out."


def test_a_circle_through_two_sources_is_found(tmp_path: Path) -> None:
    shop = {"source": "shop", "queries": {"orders": {**QUERY, "upstreams": [ADS]}}}
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump(shop))
    settings = changed(SETTINGS, "sources.shop", {"queries": "shop.yaml", "customers": ["c1"]})
    catalogue = changed(
        CATALOGUE, "queries.campaign_daily.upstreams", [{"source": "shop", "query": "orders"}]
    )
    error = refused(write_book(tmp_path, settings, catalogue))
    assert "upstreams go round in a circle" in str(error)
    write_book(tmp_path, settings, CATALOGUE)
    assert load_settings(tmp_path).sources["shop"].queries["orders"].upstreams


def test_the_policy_of_a_query_is_read_as_that_of_a_source(tmp_path: Path) -> None:
    catalogue = changed(CATALOGUE, "queries.campaign_daily.freshness", {"due": ["6h", "soon"]})
    error = refused(write_book(tmp_path, SETTINGS, catalogue))
    assert ": queries.campaign_daily.freshness.due[1]: due 'soon' is not valid" in str(error)


def test_a_rule_is_named_by_its_number(tmp_path: Path) -> None:
    """Its name cannot be: that is what is wrong."""
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, f"{IN_CONTRACT}rules[0].name", "No!")))
    assert f"{IN_CONTRACT}rules[0]: rule 'No!' is not valid" in str(error)


def test_a_query_without_contracts(tmp_path: Path) -> None:
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, f"{IN_QUERY}contracts", {})))
    assert f"{IN_QUERY}schema_version: query campaign_daily schema_version '1' is not valid" in str(error)


def test_a_nested_struct_names_its_own_fields(tmp_path: Path) -> None:
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, f"{IN_CONTRACT}rules[0].share", 1)))
    assert error.remedy == "The fields here are: name, expression, max_share, max_count, severity."


@pytest.mark.parametrize("field", ["api_version", f"{IN_QUERY}schema_version"])
def test_text_that_lost_its_quotes_says_so(tmp_path: Path, field: str) -> None:
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, field, 1)))
    assert error.remedy == "Put it in quotes."


def test_a_catalogue_belongs_to_one_source(tmp_path: Path) -> None:
    settings = changed(SETTINGS, "sources.demo", SETTINGS["sources"]["google_ads"])
    error = refused(write_book(tmp_path, settings))
    assert "source: 'google_ads' is used as the catalogue of source 'demo' (line 1)" in str(error)


def test_what_is_found_wrong_later_is_still_located(tmp_path: Path) -> None:
    """A rule, for one, whose expression only Spark can understand: the query knows its file."""
    file = write_book(tmp_path)
    query = load_settings(file).sources["google_ads"].queries["campaign_daily"]
    assert query.file == tmp_path / "config/google_apis.yaml"
    assert query == replace(query, file=None)

    error = error_in(query.file, ("queries", "campaign_daily", "text"), "it is too slow")

    lines = query.file.read_text().splitlines()
    line = next(number for number, each in enumerate(lines, start=1) if each.strip().startswith("text:"))
    assert str(error) == f"{query.file}: queries.campaign_daily.text: it is too slow (line {line})"
