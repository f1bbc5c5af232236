"""A wrong sealbook.yaml is refused with an error that names the file, the field and the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.books import REMOVED, SETTINGS, changed, refused, write_book

SECRET = "hunter2"
GOOGLE_ADS = SETTINGS["sources"]["google_ads"]
IN_CUSTOMER = "sources.google_ads.customers[1]"

# A field, the value it gets, and what the error says of it.
FIELDS: list[tuple[str, object, str]] = [
    ("ledger", REMOVED, "the field is missing"),
    ("ledger", None, "expected `str`, got `null`"),
    ("ledger", 5, "expected `str`, got `int`"),
    ("ledger", ["sqlite:///x.db"], "expected `str`, got a list"),
    ("ledger", "", "the value is not a URL"),
    ("ledger", "sealbook.db", "the value is not a URL"),
    ("ledger", "sqlite:book.db", "the value is not a URL"),
    ("ledger", "sqlite://", "the SQLite URL names no file"),
    ("ledger", "sqlite:///", "the SQLite URL names no file"),
    ("ledger", "sqlite:///:memory:", "the SQLite URL names no file"),
    ("ledger", "sqlite:///folder/", "the SQLite URL names no file"),
    ("ledger", "sqlite:///?mode=ro", "the SQLite URL names no file"),
    ("ledger", "sqlite:///book.db?mode=ro", "the SQLite URL names no file"),
    ("ledger", "sqlite://host/book.db", "the SQLite URL names no file"),
    ("ledger", "mysql://host/db", "ledgers of kind 'mysql' are not supported"),
    ("ledger", "postgres://host/db", "ledgers of kind 'postgres' are not supported"),
    ("ledger", "https://host/db", "ledgers of kind 'https' are not supported"),
    ("ledger", "SQLITE:///x.db", "ledgers of kind 'SQLITE' are not supported"),
    ("ledger", "://x", "ledgers of kind '' are not supported"),
    ("ledger", "postgresql://", "the PostgreSQL URL"),
    ("ledger", "postgresql://host", "the PostgreSQL URL"),
    ("ledger", "postgresql://host/", "the PostgreSQL URL"),
    ("ledger", "postgresql://host?sslmode=require", "the PostgreSQL URL"),
    ("ledger", f"postgresql://user:{SECRET}@x@host/db", "the PostgreSQL URL"),
    ("ledger", f"postgresql://user:{SECRET}@host", "the PostgreSQL URL"),
    ("ledger", f"postgresql://user:{SECRET}@host:port/db", "the PostgreSQL URL"),
    ("ledger", f"postgresql://user:{SECRET}@host:123456/db", "the PostgreSQL URL"),
    ("ledger", f"postgresql://user:{SECRET}@ho st/db", "the PostgreSQL URL"),
    ("ledger", f"user:{SECRET}@host/db", "the value is not a URL"),
    ("ledger", "${SEALBOOK_UNSET}", "the environment variable SEALBOOK_UNSET is not set"),
    ("ledger", "sqlite:///${x.db", "a ${ without a name and }"),
    ("ledger", "sqlite:///${}.db", "a ${ without a name and }"),
    ("ledger", "sqlite:///${1X}.db", "a ${ without a name and }"),
    ("raw", "", "the value names no folder"),
    ("raw", "  ", "the value names no folder"),
    ("raw", 1, "expected `str`, got `int`"),
    ("raw", None, "expected `str`, got `null`"),
    ("raw", "ftp://host/raw", "places of kind 'ftp' are not supported"),
    ("raw", "http://bucket/raw", "places of kind 'http' are not supported"),
    ("raw", "s3:/bucket/raw", "'s3:/bucket/raw' is neither a folder nor a URL, which has two slashes"),
    ("raw", "s3:bucket", "'s3:bucket' is neither a folder nor a URL"),
    ("raw", "S3:/bucket", "'S3:/bucket' is neither a folder nor a URL"),
    ("warehouse", "gcs:/bucket", "'gcs:/bucket' is neither a folder nor a URL"),
    ("raw", "s3a://bucket/raw", "places of kind 's3a' are not supported"),
    ("raw", "s3://", "the URL names no bucket"),
    ("raw", "s3:///raw", "the URL names no bucket"),
    ("warehouse", "gs://", "the URL names no bucket"),
    ("warehouse", "raw", "raw and warehouse are the same place"),
    ("warehouse", "./raw/", "raw and warehouse are the same place"),
    ("warehouse", True, "expected `str`, got `bool`"),
    ("ledgre", "x", "there is no such field"),
    ("Ledger", "x", "there is no such field"),
    ("tenant", "", "tenant '' is not valid"),
    ("tenant", "Acme", "tenant 'Acme' is not valid"),
    ("tenant", None, "expected `str`, got `null`"),
    ("workspace", "a/b", "workspace 'a/b' is not valid"),
    ("workspace", 7, "expected `str`, got `int`"),
    ("sources", [], "expected a mapping, got a list"),
    ("sources", "google_ads", "expected a mapping, got `str`"),
    ("sources", {1: {}}, "a key is not text"),
    ("sources.google_ads", None, "expected a mapping, got `null`"),
    ("sources.google_ads", [], "expected a mapping, got a list"),
    ("sources.Google", GOOGLE_ADS, "source 'Google' is not valid"),
    ("sources.a-b", GOOGLE_ADS, "source 'a-b' is not valid"),
    ("sources.google_ads.queries", REMOVED, "the field is missing"),
    ("sources.google_ads.queries", "config/none.yaml", "there is no file config/none.yaml"),
    ("sources.google_ads.queries", "config", "there is no file config"),
    ("sources.google_ads.queries", "", "there is no file"),
    ("sources.google_ads.queries", 3, "expected `str`, got `int`"),
    ("sources.google_ads.customers", REMOVED, "the field is missing"),
    ("sources.google_ads.customers", [], "expected a list of length >= 1"),
    ("sources.google_ads.customers", "1234567890", "expected a list, or a mapping, got `str`"),
    ("sources.google_ads.customers[1]", 1.5, "expected an id, or a mapping, got `float`"),
    ("sources.google_ads.customers[1]", True, "expected an id, or a mapping, got `bool`"),
    ("sources.google_ads.customers[1]", None, "expected an id, or a mapping, got `null`"),
    ("sources.google_ads.customers[1]", ["x"], "expected an id, or a mapping, got a list"),
    ("sources.google_ads.customers[1]", "", "customer_id '' is not valid"),
    ("sources.google_ads.customers[1]", "12-3456-7890", "customer_id '12-3456-7890' is not valid"),
    ("sources.google_ads.customers[1]", "123-456-789", "customer_id '123-456-789' is not valid"),
    ("sources.google_ads.customers[1]", "123456789", "customer_id '123456789' is not valid"),
    ("sources.google_ads.customers[1]", "12345678901", "customer_id '12345678901' is not valid"),
    ("sources.google_ads.customers[1]", 123, "customer_id '123' is not valid"),
    ("sources.google_ads.customers[1]", -1234567890, "customer_id '-1234567890' is not valid"),
    ("sources.google_ads.customers[1]", "\u0661" * 10, "customer_id"),
    ("sources.google_ads.customers[1]", " 2345678901", "customer_id ' 2345678901' is not valid"),
    ("sources.google_ads.customers[1]", "1234567890", "customer 1234567890 is listed twice"),
    ("sources.google_ads.customers[0]", "${UNSET_TOO}", "the environment variable UNSET_TOO is not set"),
    ("sources.google_ads.customer", [], "there is no such field"),
    ("sources.google_ads.customers[1]", {"id": "1234567890"}, "customer 1234567890 is listed twice"),
    ("sources.google_ads.customers[1].id", REMOVED, "the field is missing"),
    ("sources.google_ads.customers[1].id", True, "expected `int | str`, got `bool`"),
    ("sources.google_ads.customers[1].zone", "UTC", "there is no such field"),
    ("sources.google_ads.customers[1].time_zone", "Europe/Berln", "there is no time zone 'Europe/Berln'"),
    ("sources.google_ads.customers[1].first_day", "2026-1-1", "first_day '2026-1-1' is not valid"),
    ("sources.google_ads.customers[1].last_day", "2026-02-30", "last_day '2026-02-30' is not valid"),
    ("sources.google_ads.customers[1].last_day", 20260101, "expected `str | null`, got `int`"),
    ("sources.google_ads.time_zone", "", "there is no time zone ''"),
    ("sources.google_ads.time_zone", "Europe", "there is no time zone 'Europe'"),
    ("sources.google_ads.time_zone", "../UTC", "there is no time zone '../UTC'"),
    ("sources.google_ads.time_zone", "/etc/localtime", "there is no time zone '/etc/localtime'"),
    ("sources.google_ads.time_zone", "+01:00", "there is no time zone '+01:00'"),
    ("sources.google_ads.time_zone", "UTC\0", "there is no time zone 'UTC\\x00'"),
    ("sources.google_ads.time_zone", None, "expected `str`, got `null`"),
    ("sources.google_ads.first_day", "yesterday", "first_day 'yesterday' is not valid"),
    ("sources.google_ads.last_day", "9999-99-99", "last_day '9999-99-99' is not valid"),
    ("sources.google_ads.freshness", "6h", "expected a mapping, got `str`"),
    ("sources.google_ads.options", [], "expected a mapping, got a list"),
    ("sources.google_ads.options", {1: 2}, "a key is not text"),
    ("sources.google_ads.options.token", "${UNSET}", "the environment variable UNSET is not set"),
    ("sources.google_ads.limits", 5, "expected a mapping, got `int`"),
    ("sources.google_ads.limits", None, "expected a mapping, got `null`"),
    ("sources.google_ads.limits.thread", 1, "there is no such field"),
    ("sources.google_ads.limits.threads", 0, "expected `int` >= 1"),
    ("sources.google_ads.limits.threads", -1, "expected `int` >= 1"),
    ("sources.google_ads.limits.threads", 1001, "expected `int` <= 1000"),
    ("sources.google_ads.limits.threads", 1.5, "expected `int`, got `float`"),
    ("sources.google_ads.limits.threads", "8", "expected `int`, got `str`"),
    ("sources.google_ads.limits.requests_per_second", 0, "expected `float` > 0"),
    ("sources.google_ads.limits.requests_per_second", -2, "expected `float` > 0"),
    ("sources.google_ads.limits.requests_per_second", True, "expected `float | null`, got `bool`"),
    ("sources.google_ads.limits.requests_per_second", 1e9, "expected `float` <= 1000000"),
    ("sources.google_ads.limits.requests_per_second_per_customer", "fast", "expected `float | null`"),
    ("spark", "local", "expected a mapping, got `str`"),
    ("spark.master", 4, "expected `str`, got `int`"),
    ("spark.masters", "x", "there is no such field"),
    ("spark.config", ["x"], "expected a mapping, got a list"),
    ("spark.config.fraction", 0.6, "expected text"),
    ("spark.config.fraction", None, "expected text"),
    ("spark.config.fraction", {"b": "c"}, "expected text"),
]


POLICIES: list[tuple[str, object, str]] = [
    ("due", REMOVED, "the field is missing"),
    ("due", "6h", "due is '6h'"),
    ("due", [], "due () is not valid: expected at least one point"),
    ("due", ["3d", "6h"], "due points are not in ascending order"),
    ("due", ["6h", "360m"], "due points are not in ascending order"),
    ("due[0]", "6", "due '6' is not valid: expected a number of days, hours, minutes or seconds"),
    ("due[0]", "-6h", "due '-6h' is not valid"),
    ("due[0]", 6, "expected `str`, got `int`"),
    ("max_lag", "soon", "max_lag 'soon' is not valid"),
    ("max_lag", None, "expected `str`, got `null`"),
    ("lag", "1h", "there is no such field"),
]


@pytest.mark.parametrize(("field", "value", "says"), POLICIES)
def test_the_field_of_a_policy_is_named(tmp_path: Path, field: str, value: object, says: str) -> None:
    settings = changed(SETTINGS, "sources.google_ads.freshness", {"due": ["6h"], "max_lag": "1h"})
    error = refused(write_book(tmp_path, changed(settings, f"sources.google_ads.freshness.{field}", value)))
    assert str(error).startswith(f"{tmp_path}/sealbook.yaml: sources.google_ads.freshness.{field}: {says}")
    if field == "lag":
        assert error.remedy == "The fields here are: due, max_lag, within, at_most, tolerance."


ENDS_FIRST = "the days of an account end before they begin: first_day 2026-02-01, last_day 2026-01-01"


def test_days_that_end_before_they_begin(tmp_path: Path) -> None:
    both = {"first_day": "2026-02-01", "last_day": "2026-01-01"}
    own = changed(SETTINGS, "sources.google_ads.customers[1]", {"id": "2345678901", **both})
    error = refused(write_book(tmp_path, own))
    assert f"sources.google_ads.customers[1]: {ENDS_FIRST}" in str(error)
    usual = changed(SETTINGS, "sources.google_ads", {**GOOGLE_ADS, **both})
    assert f"sources.google_ads: {ENDS_FIRST}" in str(refused(write_book(tmp_path, usual)))


def test_a_time_zone_with_a_typo_says_which_is_near(tmp_path: Path) -> None:
    error = refused(write_book(tmp_path, changed(SETTINGS, "sources.google_ads.time_zone", "Europe/Berln")))
    assert error.remedy == "Did you mean Europe/Berlin?"
    error = refused(write_book(tmp_path, changed(SETTINGS, "sources.google_ads.time_zone", "?")))
    assert error.remedy == "Name one as IANA does, such as America/New_York."


@pytest.mark.parametrize(("field", "value", "says"), FIELDS)
def test_the_field_is_named(tmp_path: Path, field: str, value: object, says: str) -> None:
    settings = SETTINGS
    if field.startswith(f"{IN_CUSTOMER}."):
        settings = changed(SETTINGS, IN_CUSTOMER, {"id": "2345678901"})
    error = refused(write_book(tmp_path, changed(settings, field, value)))
    assert str(error).startswith(f"{tmp_path}/sealbook.yaml: {field}: {says}")
    assert re.search(r" \(line [1-9]\d*\)$", str(error))
    assert SECRET not in f"{error} {error.remedy}"


def test_a_key_of_the_top_that_is_no_text(tmp_path: Path) -> None:
    error = refused(write_book(tmp_path, "7: x\nledger: sqlite:///x.db\n"))
    assert str(error) == f"{tmp_path}/sealbook.yaml: a key is not text (line 1)"


def test_the_line_and_the_fields_there_are(tmp_path: Path) -> None:
    text = "ledger: sqlite:///x.db\n\nspark:\n  master: local\n  # a typo:\n  confg: {}\n"
    error = refused(write_book(tmp_path, text))
    assert str(error) == f"{tmp_path}/sealbook.yaml: spark.confg: there is no such field (line 6)"
    assert error.remedy == "The fields here are: master, config, class_archive, ship_packages."


def test_the_line_of_a_list_item(tmp_path: Path) -> None:
    text = (
        "ledger: sqlite:///x.db\nsources:\n  google_ads:\n    queries: config/google_apis.yaml\n"
        "    customers:\n      - 1234567890\n      - oops\n"
    )
    error = refused(write_book(tmp_path, text))
    assert "sources.google_ads.customers[1]: customer_id 'oops'" in str(error)
    assert str(error).endswith("(line 7)")


def test_files_are_named_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_book(tmp_path, changed(SETTINGS, "sources.google_ads.customers[1]", "x"))
    monkeypatch.chdir(tmp_path)
    assert str(refused(file)).startswith("sealbook.yaml: sources.google_ads.customers[1]: customer_id 'x'")


@pytest.mark.parametrize("name", ["nowhere", "nowhere/sealbook.yaml", "empty"])
def test_a_path_without_settings(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    error = refused(tmp_path / name)
    assert "there is no file" in str(error)
    assert "sealbook init" in str(error.remedy)
