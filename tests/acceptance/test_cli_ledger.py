"""`sealbook ledger`: migrations and roles, on SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import sealbook
from sealbook.ledger.db.schema import HEAD
from sealbook.model import PartitionKey, Verdict
from tests.support.books import SETTINGS, changed, write_book
from tests.support.cli import answer, run
from tests.support.ledger import PostgresqlServer

ROLES = ["consumer", "viewer", "extractor", "loader", "validator", "control"]


@pytest.fixture
def on_postgresql(tmp_path: Path, postgresql: PostgresqlServer) -> str:
    """Settings in `tmp_path` that name a new, empty database; return its URL."""
    url = postgresql.create_database()
    write_book(tmp_path, changed(SETTINGS, "ledger", url))
    return url


def test_sqlite_migrates_by_itself(tmp_path: Path) -> None:
    write_book(tmp_path)
    assert run("state", "inspect", cwd=tmp_path).code == 0
    ran = run("ledger", "version", "--format", "json", cwd=tmp_path)
    assert ran.json == [{"revision": HEAD, "needed": HEAD}]


def test_migrate_says_what_it_did(tmp_path: Path) -> None:
    write_book(tmp_path)
    first, second = (run("ledger", "migrate", cwd=tmp_path) for _ in range(2))
    assert (first.code, first.out) == (0, "")
    assert f"went from no tables to revision {HEAD}" in first.err
    assert f"is at revision {HEAD} already" in second.err


@pytest.mark.usefixtures("on_postgresql")
def test_postgresql_is_refused_until_it_is_migrated(tmp_path: Path) -> None:
    refused = run("state", "inspect", cwd=tmp_path)
    assert (refused.code, refused.out) == (2, "")
    assert "remedy: Run `sealbook ledger migrate`." in refused.err
    assert run("ledger", "version", "--format", "json", cwd=tmp_path).json == [
        {"revision": None, "needed": HEAD}
    ]
    assert run("ledger", "migrate", cwd=tmp_path).code == 0
    assert run("state", "inspect", "--format", "json", cwd=tmp_path).json == []


def test_grant_creates_the_roles_and_can_be_repeated(tmp_path: Path, on_postgresql: str) -> None:
    """R-STATE-2."""
    run("ledger", "migrate", cwd=tmp_path)
    for _ in range(2):
        ran = run("ledger", "grant", "--prefix", "cli_test_", "--format", "json", cwd=tmp_path)
        assert ran.code == 0
        assert sorted(row["role"] for row in ran.json) == sorted(f"cli_test_{role}" for role in ROLES)
    with psycopg.connect(on_postgresql) as connection:
        found = connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'cli_test_%'").fetchall()
    assert {name for (name,) in found} == {f"cli_test_{role}" for role in ROLES}


@pytest.mark.usefixtures("on_postgresql")
def test_grant_needs_tables_to_grant(tmp_path: Path) -> None:
    refused = run("ledger", "grant", cwd=tmp_path)
    assert refused.code == 2
    assert "remedy: Run `sealbook ledger migrate`." in refused.err


def test_sqlite_has_no_roles(tmp_path: Path) -> None:
    write_book(tmp_path)
    run("ledger", "migrate", cwd=tmp_path)
    refused = run("ledger", "grant", cwd=tmp_path)
    assert refused.code == 2
    assert "Roles need PostgreSQL" in refused.err


def test_verify_names_where_a_table_differs_from_the_log(tmp_path: Path) -> None:
    """R-EVT-11."""
    write_book(tmp_path)
    key = PartitionKey.parse("google_ads/1234567890/campaign_daily/2026-01-01")
    with sealbook.open(tmp_path) as book:
        book.ledger.judge(
            [Verdict.reject(key, book.ledger.open_run(), error_message="bad", validator_version="v")]
        )
    whole = run("ledger", "verify", "--format", "json", cwd=tmp_path)
    assert (whole.code, whole.json) == (0, [])
    assert "Verified 1 partition; differences: 0" in whole.said

    with closing(sqlite3.connect(tmp_path / "sealbook.db", isolation_level=None)) as connection:
        connection.execute("UPDATE partition_state SET error_message = 'worse'")

    ran = run("ledger", "verify", "--format", "json", cwd=tmp_path)
    assert ran.code == 1
    [difference] = ran.json
    assert list(difference)[:4] == ["source", "customer_id", "query_name", "logical_date"]
    assert (difference["field"], difference["from_log"]) == ("error_message", "bad")
    assert difference["in_table"] == "worse"
    assert "worse" in run("ledger", "verify", cwd=tmp_path).out

    for chosen in ([str(key)], ["--customer", "123-456-7890", "--day", "2026-01-01"]):
        assert run("ledger", "verify", *chosen, "--format", "json", cwd=tmp_path).json == [difference]
    others = run("ledger", "verify", "--since", "2026-01-02", cwd=tmp_path)
    assert (others.code, "Verified 0 partitions; differences: 0" in others.said) == (0, True)


def test_a_book_is_copied_to_postgresql_and_goes_on_there(
    tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    write_book(tmp_path)
    key = PartitionKey.parse("google_ads/1234567890/campaign_daily/2026-01-01")
    with sealbook.open(tmp_path) as book:
        run_id = book.ledger.open_run()
        verdict = Verdict.accept(key, run_id, schema_version="1", record_count=1, validator_version="v")
        book.ledger.judge([verdict])
    url = postgresql.create_database()
    copied = run("ledger", "copy", "--to", url, "--format", "json", cwd=tmp_path)
    assert copied.code == 0, copied.err
    assert {"table": "partition_state", "rows": 1} in [
        {"table": row["table"], "rows": row["rows"]} for row in copied.json
    ]
    again = run("ledger", "copy", "--to", url, cwd=tmp_path)
    assert again.code == 2
    assert "is not empty" in again.said

    code, shown = answer(tmp_path, "", "ledger", "copy", "--to", f"sqlite:///{tmp_path}/copy.db")
    assert (code, "rows, now warehouse_version" in shown) == (0, True), "at a terminal it says how far it is"

    before = run("state", "inspect", "--format", "json", cwd=tmp_path).json
    write_book(tmp_path, changed(SETTINGS, "ledger", url))
    assert run("state", "inspect", "--format", "json", cwd=tmp_path).json == before
    assert run("ledger", "grant", cwd=tmp_path).code == 0
    assert run("ledger", "verify", cwd=tmp_path).code == 0
