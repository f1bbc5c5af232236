"""`Book.diff`: which runs it compares, where their rows come from, and over versions, on each ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sealbook.book import Book
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.contract import Column, Contract
from sealbook.model.run_diff import NotCompared, RowsFrom, RunDiff
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from tests.support.ledger import accept, reject, run_id
from tests.support.published import CONTRACTS, IRRECONCILABLE, key, open_book, publish

WITH_KEYS = {version: replace(each, primary_key=("id",)) for version, each in IRRECONCILABLE.items()}


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    with book_of(ledger_url, tmp_path, {version: WITH_KEYS[version] for version in CONTRACTS}) as opened:
        yield opened


def book_of(ledger_url: str, folder: Path, contracts: dict[str, Contract], present: str = "2") -> Book:
    (folder / "raw").mkdir(exist_ok=True)
    opened = open_book(ledger_url, folder / "warehouse", contracts, present)
    return Book(replace(opened.settings, raw=str(folder / "raw")))


def seal(book: Book, run: int, rows: list[dict[str, Any] | bytes], version: str = "1") -> None:
    """Seal a run of the first partition."""
    store = RawStore.open(book.settings.raw)
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in rows]
    payload = store.write(key(), run_id(run), lines)
    store.seal(
        key(),
        run_id(run),
        payload,
        schema_version=version,
        query_hash="0" * 64,
        extracted_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def put(book: Book, run: int, *, version: str = "1", rows: int = 10) -> None:
    publish(book.ledger, book.settings.warehouse, [key()], run, version=version, rows=rows)


def one(book: Book, *runs: int | None, limit: int = 3) -> RunDiff:
    named = [None if run is None else run_id(run) for run in runs]
    [found] = book.diff(Selection(keys=[key()]), *named, limit=limit)
    assert isinstance(found, RunDiff), found
    return found


def counts(found: RunDiff) -> tuple[int, int, int, int]:
    rows = found.rows
    return rows.added, rows.removed, rows.changed, rows.unchanged


def test_the_published_run_is_compared_with_the_one_before(book: Book) -> None:
    put(book, 1, rows=10)
    put(book, 2, rows=12)
    found = one(book)
    assert (found.before.run_id, found.after.run_id) == (run_id(1), run_id(2))
    assert (found.before.rows_from, found.before.rows, found.after.rows) == (RowsFrom.ARTIFACT, 10, 12)
    assert counts(found) == (2, 0, 10, 0)
    assert found.rows.primary_key == ("id",)
    clicks = next(each for each in found.rows.columns if each.name == "clicks")
    assert (clicks.changed, clicks.total_before, clicks.total_after) == (10, 10, 24)
    assert [each.primary_key for each in found.rows.sample] == [
        {"id": 0},
        {"id": 1},
        {"id": 2},
        {"id": 10},
        {"id": 11},
    ]
    assert found.rows.sample[0].before is not None
    assert found.rows.sample[0].before["clicks"] == 1
    assert counts(one(book, 2, 1)) == (0, 2, 10, 0)


def test_a_rejected_run_is_compared_by_its_payload(book: Book) -> None:
    put(book, 1, rows=2)
    seal(book, 2, [{"id": 0, "clicks": 1}, {"id": 0, "clicks": 7}, b"{no json", {"id": 1, "clicks": 1}])
    book.ledger.judge([reject(key(), 2)])
    found = one(book)
    assert (found.before.run_id, found.after.run_id) == (run_id(1), run_id(2))
    assert (found.after.rows_from, found.after.rows, found.after.unreadable_lines) == (RowsFrom.PAYLOAD, 3, 1)
    assert counts(found) == (1, 0, 2, 0)  # the rows of run 1 have more columns filled


def test_where_no_artifact_is_left_the_payload_says_the_same(book: Book) -> None:
    put(book, 1, rows=3)
    put(book, 2, rows=3)
    rows = book.table("campaign_daily", columns=["id", "clicks", "share", "at", "day", "old"]).to_pylist()
    as_json = [{**row, "at": f"{row['at']:%Y-%m-%dT%H:%M:%S.%fZ}", "day": str(row["day"])} for row in rows]
    seal(book, 2, list(as_json))
    loaded = one(book)
    shutil.rmtree(next(Path(book.settings.warehouse).rglob(f"run_id={run_id(2)}")))
    read_again = one(book)
    assert read_again.after.rows_from is RowsFrom.PAYLOAD
    assert read_again.rows == loaded.rows
    assert (loaded.after.rows_from, loaded.is_same) == (RowsFrom.ARTIFACT, False)


def test_versions_are_compared_in_the_columns_that_both_have(book: Book) -> None:
    put(book, 1, version="1", rows=4)
    put(book, 2, version="2", rows=4)
    found = one(book)
    assert (found.before.schema_version, found.after.schema_version) == ("1", "2")
    assert (found.only_before, found.only_after, found.incomparable) == (("old",), ("name",), ())
    assert [each.name for each in found.rows.columns] == ["id", "clicks", "share", "at", "day"]
    assert counts(found) == (0, 0, 4, 0)


def test_a_renamed_column_is_one_and_one_of_other_types_is_named(ledger_url: str, tmp_path: Path) -> None:
    renamed = replace(
        WITH_KEYS["1"],
        columns=tuple(
            replace(each, name="hits", renamed_from="clicks") if each.name == "clicks" else each
            for each in CONTRACTS["1"].columns
        ),
        schema_version="4",
    )
    contracts = {"1": WITH_KEYS["1"], "3": WITH_KEYS["3"], "4": renamed}
    with book_of(ledger_url, tmp_path, contracts, "4") as book:
        put(book, 1, rows=1)
        seal(book, 2, [{"id": 0, "hits": 1}], "4")
        clicks = next(each for each in one(book).rows.columns if each.name == "hits")
        assert (clicks.total_before, clicks.total_after, clicks.changed) == (1, 1, 0)
        seal(book, 3, [{"id": 0, "clicks": "many"}], "3")
        assert one(book, 1, 3).incomparable == ("hits",)


def test_without_a_primary_key_whole_rows_are_compared(ledger_url: str, tmp_path: Path) -> None:
    contract = Contract("campaign_daily", "1", (Column("id", CONTRACTS["1"].columns[0].type),))
    with book_of(ledger_url, tmp_path, {"1": contract}, "1") as book:
        seal(book, 1, [{"id": 1}, {"id": 1}, {"id": 2}])
        seal(book, 2, [{"id": 1}, {"id": 2}, {"id": 2}])
        assert counts(one(book)) == (1, 1, 0, 2)


def test_what_cannot_be_compared_is_told_beside_the_others(book: Book) -> None:
    other, third = key(1), key(2)
    put(book, 1)
    put(book, 2)
    publish(book.ledger, book.settings.warehouse, [other, third], 1)
    publish(book.ledger, book.settings.warehouse, [third], 2)
    for part in Path(book.settings.warehouse).rglob("customer_id=c2/**/*.parquet"):
        part.write_bytes(b"no parquet")
    same, alone, damaged = book.diff(Selection(queries="campaign_daily"))
    assert isinstance(same, RunDiff)
    assert isinstance(alone, NotCompared)
    assert (alone.key, alone.failed) == (other, False)
    assert isinstance(damaged, NotCompared)
    assert damaged.failed
    assert "not what was loaded" in damaged.why
    [unknown] = book.diff(Selection(keys=[key()]), run_id(1), run_id(9))
    assert isinstance(unknown, NotCompared)
    assert run_id(9) in unknown.why


def test_a_key_that_nobody_knows_has_nothing_to_compare(book: Book) -> None:
    nobody = PartitionKey("demo", "c9", "campaign_daily", key().logical_date)
    [found] = book.diff(Selection(keys=[nobody]))
    assert isinstance(found, NotCompared)
    assert found.to_dict()["customer_id"] == "c9"


def test_runs_are_named_apart_from_partitions(book: Book) -> None:
    with pytest.raises(InvalidInput, match="runs or statuses"):
        book.diff(Selection(runs=run_id(1)))


def test_a_newer_accepted_run_that_is_not_loaded_is_compared_with_what_is_read(book: Book) -> None:
    put(book, 1, rows=1)
    seal(book, 2, [{"id": 0, "clicks": 1}])
    book.ledger.judge([accept(key(), 2, records=1)])
    assert one(book).after.run_id == run_id(2)
