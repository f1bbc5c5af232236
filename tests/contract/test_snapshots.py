"""`Book.snapshot`: rows, coverage and what is behind, by Arrow and SQL, are of one instant (R-CON-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealbook.book import Book
from sealbook.book.snapshot import Snapshot
from sealbook.errors import InvalidInput, NotFound, Permanent
from sealbook.model.publication import CoverageKind
from tests.support.ledger import accept, reject, run_id
from tests.support.published import QUERY, contract, key, open_book, publish

KEYS = [key(customer) for customer in range(3)]
JOIN = f"""
select one.customer_id, one.run_id, other.run_id as other_run_id
from (select distinct customer_id, run_id from {QUERY}) as one
join (select distinct customer_id, run_id from clicks) as other using (customer_id)
"""


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    """Three partitions of each of two queries, all of run 1; the newest of one is accepted and not loaded."""
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        publish(opened.ledger, opened.settings.warehouse, KEYS, 1, rows=2)
        publish(opened.ledger, opened.settings.warehouse, [key(0, query="clicks")], 1, rows=1)
        opened.ledger.judge([accept(KEYS[1], 2)])
        yield opened


def change_everything(book: Book) -> None:
    """Replace, demote, and publish for the first time."""
    ledger, warehouse = book.ledger, book.settings.warehouse
    publish(ledger, warehouse, [KEYS[0], key(0, 1), key(0, query="clicks")], 3, rows=2)
    ledger.judge([reject(KEYS[2], 1, again="once more")])


def seen(at: Snapshot | Book) -> dict[str, object]:
    """Ask everything that a snapshot can be asked without Spark."""
    table = at.table(QUERY, lineage=True)
    by_sql = at.sql(f"select * from {QUERY}", lineage=True)
    assert by_sql.column_names == table.column_names
    assert by_sql.to_pylist() == table.to_pylist()
    said = {
        (row["customer_id"], row["logical_date"]): (row["run_id"], row["behind"]) for row in table.to_pylist()
    }
    covered = {
        (each.customer_id, each.logical_date): (each.run_id, each.kind is CoverageKind.BEHIND)
        for each in at.coverage(QUERY)
        if each.run_id is not None
    }
    assert covered == said
    return {"rows": table.to_pylist(), "join": at.sql(JOIN).to_pylist(), "said": said}


def test_everything_of_a_snapshot_is_of_one_instant(book: Book) -> None:
    with book.snapshot() as at:
        before = seen(at)
        version = at.version
        change_everything(book)
        assert seen(at) == before
        assert at.version == version
        assert before["join"] == [
            {"customer_id": "c0", "run_id": run_id(1), "other_run_id": run_id(1)},
        ]
    after = seen(book)
    assert after != before
    assert after["said"] == {
        ("c0", key().logical_date): (run_id(3), False),
        ("c0", key(0, 1).logical_date): (run_id(3), False),
        ("c1", key().logical_date): (run_id(1), True),
    }
    with book.snapshot() as now:
        assert seen(now) == after
        assert now.version > version


def test_what_is_asked_of_a_book_is_a_snapshot_of_now(book: Book) -> None:
    asks: list[Callable[[Snapshot | Book], object]] = [
        lambda at: at.table(QUERY, customers="c1", columns=["id", "run_id"]).to_pylist(),
        lambda at: at.table(QUERY, since="2026-01-02").num_rows,
        lambda at: at.sql(f"select count(*) as n from {QUERY}").to_pylist(),
        lambda at: at.coverage(QUERY, customers=["c1", "c2"], source="demo"),
    ]
    with book.snapshot() as now:
        assert [ask(now) for ask in asks] == [ask(book) for ask in asks]
    with book.snapshot(strict=True) as strict:
        assert strict.table(QUERY).to_pylist() == book.table(QUERY, strict=True).to_pylist()
        assert strict.coverage(QUERY) == book.coverage(QUERY, strict=True)
        assert strict.table(QUERY).num_rows == 4


def test_a_snapshot_at_a_cut_is_that_of_the_cut(book: Book) -> None:
    cut = book.ledger.pointers.create_cut("month_end")
    change_everything(book)
    with book.snapshot(cut="month_end") as at:
        assert at.version == cut.version
        assert at.table(QUERY).to_pylist() == book.table(QUERY, cut="month_end").to_pylist()
        kinds = {each.customer_id: each.kind for each in at.coverage(QUERY) if each.run_id is not None}
        assert kinds["c2"] is CoverageKind.WITHDRAWN
        assert at.sql(f"select count(*) as n from {QUERY}").to_pylist() == [{"n": 6}]
    with pytest.raises(NotFound, match="nowhere"):
        book.snapshot(cut="nowhere")


def test_lineage_says_which_run_when_and_whether_it_is_behind(book: Book) -> None:
    table = book.table(QUERY, columns=["id"], lineage=True)
    assert table.column_names == ["id", "run_id", "loaded_at", "behind"]
    loaded = {each.run_id: each.loaded_at for each in book.ledger.pointers.load_records()}
    assert set(table["loaded_at"].to_pylist()) == {loaded[run_id(1)]}
    assert table["behind"].to_pylist() == [False, False, True, True, False, False]
    answer = book.sql(f"select count(*) as n from {QUERY} where behind and id < 9", lineage=True)
    assert answer.to_pylist() == [{"n": 2}]
    with pytest.raises(InvalidInput, match="behind"):
        book.sql(f"select behind from {QUERY}")


def test_a_query_with_such_a_column_of_its_own_has_no_lineage(ledger_url: str, tmp_path: Path) -> None:
    contracts = {"1": contract("1", id="int", behind="int")}
    with open_book(ledger_url, tmp_path / "warehouse", contracts, "1") as book:
        assert book.table(QUERY).column_names[-1] == "behind"
        with pytest.raises(InvalidInput, match="behind"):
            book.table(QUERY, lineage=True)
        with pytest.raises(InvalidInput, match="behind"):
            book.sql(f"select * from {QUERY}", lineage=True)


def test_a_closed_snapshot_says_so(book: Book) -> None:
    at = book.snapshot()
    at.close()
    at.close()
    with pytest.raises(Permanent, match="closed"):
        at.table(QUERY)


def test_the_reading_side_has_snapshots(book: Book) -> None:
    with book.reader.snapshot() as at:
        assert at.table(QUERY).num_rows == 6
