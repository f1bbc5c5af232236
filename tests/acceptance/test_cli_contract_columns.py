"""R-WH-7: columns under which runs were accepted are fixed; the command line says so before any job."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import sealbook
from sealbook.model import PartitionKey, Verdict
from tests.support.books import CATALOGUE, changed, write_book
from tests.support.cli import run

KEY = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
CONTRACT = "queries.campaign_daily.contracts.1"
EDITED = changed(CATALOGUE, f"{CONTRACT}.columns.metrics_clicks.type", "bigint")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A book with an accepted run."""
    write_book(tmp_path)
    (tmp_path / "raw").mkdir()
    with sealbook.open(tmp_path) as book:
        book.ledger.contracts.put_in_force(book.queries)
        verdict = Verdict.accept(
            KEY, "01J8ZQ6T5N8W3Y2V7R4K9M0X00", schema_version="1", record_count=1, validator_version="v"
        )
        book.ledger.judge([verdict])
    return tmp_path


@pytest.mark.parametrize(
    "command", [["validate"], ["validate", "--revalidate"], ["load"], ["contract", "check"]]
)
def test_changed_columns_are_refused(folder: Path, command: list[str]) -> None:
    """With the file, the line and the way out; nothing is judged or loaded."""
    write_book(folder, catalogue=EDITED)
    ran = run(*command, cwd=folder)
    assert ran.code == 2
    assert "metrics_clicks was double, is bigint" in ran.said
    assert "google_apis.yaml" in ran.said
    assert "schema_version of their own" in ran.said
    with sealbook.open(folder) as book:
        assert book.ledger.state(KEY).attempt_count == 1
        assert len(book.ledger.reader.contracts.history()) == 1


def test_changed_rules_are_not(folder: Path) -> None:
    """A contract of new rules judges again; columns of a schema_version of their own do too."""
    write_book(folder, catalogue=changed(CATALOGUE, f"{CONTRACT}.rules[0].expression", "metrics_clicks > 0"))
    assert run("validate", cwd=folder).code == 0
    both = changed(
        CATALOGUE, "queries.campaign_daily.contracts.2", EDITED["queries"]["campaign_daily"]["contracts"]["1"]
    )
    write_book(folder, catalogue=both)
    assert run("validate", cwd=folder).code == 0


def test_a_book_without_a_ledger_has_rules_to_check(tmp_path: Path) -> None:
    write_book(tmp_path)
    ran = run("contract", "check", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "nothing wrong" in ran.said
    assert not list(tmp_path.rglob("*.db"))
