"""`Book.table`, `Book.sql` and `Book.coverage` on each ledger: R-CON-1 to 3, and each consumer guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sealbook.book import Book
from sealbook.errors import ConfigError, Corrupt, InvalidInput, Irreconcilable, NotFound
from sealbook.model.publication import CoverageKind
from sealbook.model.selection import Selection
from sealbook.warehouse.layout import part_paths
from tests.support.ledger import accept, reject, run_id
from tests.support.published import (
    CONTRACTS,
    CUSTOMERS,
    FIRST_DAY,
    IRRECONCILABLE,
    QUERY,
    key,
    open_book,
    publish,
    write,
)

KEYS = [key(customer, day) for customer in range(2) for day in range(3)]


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        yield opened


def put(book: Book, *arguments: object, **options: object) -> None:
    publish(book.ledger, book.settings.warehouse, *arguments, **options)  # type: ignore[arg-type]


def runs(table: pa.Table) -> dict[tuple[str, object], set[str]]:
    """Return the runs that a table has of each partition."""
    found: dict[tuple[str, object], set[str]] = {}
    for row in table.select(["customer_id", "logical_date", "run_id"]).to_pylist():
        found.setdefault((row["customer_id"], row["logical_date"]), set()).add(row["run_id"])
    return found


def test_guarantee_every_partition_gives_the_rows_of_exactly_one_run(book: Book) -> None:
    """R-CON-1: key columns come from the ledger, rows from the artifact, in key order."""
    put(book, KEYS, run=1)
    put(book, KEYS[:2], run=2, rows=4)
    table = book.table(QUERY)
    assert table.num_rows == 2 * 4 + 4 * 10
    assert runs(table) == {
        (each.customer_id, each.logical_date): {run_id(2 if each in KEYS[:2] else 1)} for each in KEYS
    }
    assert set(zip(table["run_id"].to_pylist(), table["clicks"].to_pylist(), strict=True)) == {
        (run_id(1), 1), (run_id(2), 2),
    }  # fmt: skip
    order = list(zip(table["customer_id"].to_pylist(), table["logical_date"].to_pylist(), strict=True))
    assert order == sorted(order)
    assert set(table["source"].to_pylist()) == {"demo"}


def test_guarantee_only_a_pointer_whose_state_is_success_is_read(book: Book) -> None:
    """R-WH-5, R-CON-3: a demotion takes the rows away, though no loader ran."""
    put(book, KEYS)
    book.ledger.judge([reject(KEYS[0], 1, again="r")])
    assert (KEYS[0].customer_id, KEYS[0].logical_date) not in runs(book.table(QUERY))
    assert book.sql(f"select count(*) n from {QUERY}").to_pylist() == [{"n": 50}]


def test_guarantee_a_replacement_is_total(book: Book) -> None:
    """Nothing of the old run is left, and nothing is there twice."""
    put(book, KEYS[:1], run=1, rows=10)
    put(book, KEYS[:1], run=2, rows=3)
    assert book.table(QUERY)["clicks"].to_pylist() == [2, 2, 2]


def test_guarantee_a_replacement_is_atomic(book: Book) -> None:
    """The swap is the publish point: before it all is as it was, whatever is staged; after it all is new."""
    put(book, KEYS, run=1)
    before = book.table(QUERY)
    book.ledger.judge([accept(each, 2) for each in KEYS])
    staged = [write(book.settings.warehouse, each, 2, contract=CONTRACTS["1"]) for each in KEYS]
    assert book.table(QUERY) == before

    book.ledger.pointers.swap(staged)

    assert set(book.table(QUERY)["run_id"].to_pylist()) == {run_id(2)}
    assert book.table(QUERY).num_rows == before.num_rows


def test_guarantee_freshness_is_told_by_load_records(book: Book) -> None:
    put(book, KEYS[:1], run=1)
    [record] = book.ledger.pointers.load_records(Selection(queries=QUERY))
    assert (record.key, record.run_id, record.schema_version) == (KEYS[0], run_id(1), "1")
    assert record.loaded_at.tzinfo is not None


def test_guarantee_a_backfill_leaves_the_others_as_they_are(book: Book) -> None:
    """And a load of the same run, once more, changes nothing and doubles nothing."""
    put(book, KEYS[1:])
    before = book.table(QUERY)
    put(book, KEYS[:1], run=2)
    after = book.table(QUERY)
    assert after.slice(10) == before
    put(book, KEYS[:1], run=2)
    assert book.table(QUERY) == after


def test_what_is_behind_stays_readable_unless_strict(book: Book) -> None:
    """R-CON-2."""
    put(book, KEYS)
    book.ledger.judge([accept(KEYS[0], 2)])
    assert len(runs(book.table(QUERY))) == 6
    assert len(runs(book.table(QUERY, strict=True))) == 5
    assert book.sql(f"select * from {QUERY}", strict=True).num_rows == 50


def test_a_cut_gives_the_same_rows_after_reloads(book: Book) -> None:
    """R-WH-7."""
    put(book, KEYS)
    before = book.table(QUERY)
    cut = book.ledger.pointers.create_cut()
    put(book, KEYS, run=2)
    book.ledger.judge([reject(KEYS[0], 2, again="r")])
    assert book.table(QUERY, cut=cut.token) == before
    assert book.sql(f"select sum(clicks) s from {QUERY}", cut=cut.token).to_pylist() == [{"s": 60}]


def test_filters(book: Book) -> None:
    put(book, KEYS)
    day = KEYS[1].logical_date
    assert book.table(QUERY, customers=["c1"]).num_rows == 30
    assert book.table(QUERY, since=day, until=day).num_rows == 20
    assert book.table(QUERY, customers=[]).num_rows == 0
    assert book.table(QUERY, columns=["clicks", "customer_id"]).column_names == ["clicks", "customer_id"]
    assert book.table(QUERY, columns=["customer_id"]).num_rows == 60
    with pytest.raises(InvalidInput, match="since"):
        book.table(QUERY, since=day, until=FIRST_DAY)


def test_a_read_of_nothing_has_all_columns(book: Book) -> None:
    empty = book.table(QUERY)
    assert empty.num_rows == 0
    assert {"name", "old"} <= set(empty.column_names)
    assert book.sql(f"select * from {QUERY}").column_names == empty.column_names


def test_two_versions_side_by_side(book: Book) -> None:
    """R-WH-6: the superset of columns, widened; null where a version has none."""
    put(book, KEYS[:1], version="1", parts=3)
    put(book, KEYS[1:2], version="2", rows=0)
    put(book, KEYS[2:3], version="2")
    table = book.table(QUERY)
    assert table.schema.field("clicks").type == pa.int64()
    assert table.schema.field("share").type == pa.float64()
    assert table["schema_version"].to_pylist() == ["1"] * 10 + ["2"] * 10
    assert table["id"].to_pylist() == [*range(10), *range(10)]
    assert table["name"].null_count == 10 + 2
    assert table["old"].null_count == 10
    assert book.sql(f"select * from {QUERY}").to_pylist() == table.to_pylist()


SELECTIONS: list[dict[str, Any]] = [
    {},
    {"customers": ["c0"]},
    {"customers": []},
    {"since": KEYS[1].logical_date},
    {"until": KEYS[0].logical_date},
    {"strict": True},
]


def test_columns_follow_from_the_query_and_not_from_what_is_selected(book: Book) -> None:
    """R-CON-6: with nothing published, with one version, with both; and SQL says the same as Arrow."""
    schema = book.table(QUERY).schema
    assert [schema.field(name).type for name in ("id", "clicks", "share", "name", "old", "at")] == [
        pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC"),
    ]  # fmt: skip
    for each, version in zip(KEYS, "12", strict=False):
        assert book.sql(f"select * from {QUERY}").schema == schema
        put(book, [each], version=version)
        for selection in SELECTIONS:
            assert book.table(QUERY, **selection).schema == schema
            only = book.table(QUERY, columns=["name", "clicks"], **selection)
            assert only.schema == pa.schema([schema.field("name"), schema.field("clicks")])
        assert book.sql(f"select * from {QUERY}").schema == schema
        assert book.sql(f"select * from {QUERY} where logical_date < date '2000-01-01'").schema == schema
        assert book.sql(f"select name, old from {QUERY} limit 0").schema == pa.schema(
            [schema.field("name"), schema.field("old")]
        )


@pytest.mark.parametrize("published", ["", "2", "3", "23"], ids=["nothing", "2", "3", "both"])
def test_a_column_that_cannot_be_reconciled_is_an_error_for_who_asks_for_it(
    ledger_url: str, tmp_path: Path, published: str
) -> None:
    """R-CON-6: whatever is published; and for no one else, in SQL as in Arrow."""
    with open_book(ledger_url, tmp_path / "warehouse", IRRECONCILABLE) as book:
        for each, version in zip(KEYS, published, strict=False):
            put(book, [each], version=version)
        rows = 10 * len(published)
        assert book.table(QUERY, columns=["id", "day"]).num_rows == rows
        assert book.sql(f"select id, day from {QUERY}").num_rows == rows
        assert book.sql(f"select count(*) n from {QUERY}").to_pylist() == [{"n": rows}]
        assert book.sql(f"select id from (select * from {QUERY})").num_rows == rows
        assert (
            book.sql(f"select t.id, c.clicks from {QUERY} t left join clicks c using (id)").num_rows == rows
        )
        asking: list[Callable[[], object]] = [
            lambda: book.table(QUERY),
            lambda: book.table(QUERY, columns=["clicks"]),
            lambda: book.table(QUERY, customers=[]),
            lambda: book.sql(f"select * from {QUERY}"),
            lambda: book.sql(f"select clicks from {QUERY}"),
            lambda: book.sql(f"select sum(clicks) from {QUERY}"),
            lambda: book.sql(f"select id from {QUERY} where clicks = '1'"),
        ]
        for ask in asking:
            with pytest.raises(Irreconcilable, match="clicks"):
                ask()
        with pytest.raises(InvalidInput, match="nowhere"):
            book.sql(f"select nowhere from {QUERY}")


def test_partitions_come_in_key_order_and_rows_in_that_of_their_payload(book: Book) -> None:
    """By Arrow, and by a plain question in SQL; in whatever order they were published, however many parts."""
    keys = [key(customer, day) for day in reversed(range(6)) for customer in (1, 2, 0)]
    for number, each in enumerate(keys, start=1):
        put(book, [each], run=number, version="12"[number % 2], rows=7, parts=1 + number % 3)
    columns = ["customer_id", "logical_date", "id"]
    rows = book.table(QUERY, columns=columns).to_pylist()
    assert [(row["customer_id"], row["logical_date"], row["id"]) for row in rows] == [
        (each.customer_id, each.logical_date, number) for each in sorted(keys) for number in range(7)
    ]
    assert book.sql(f"select {', '.join(columns)} from {QUERY}").to_pylist() == rows
    assert book.sql(f"select {', '.join(columns)} from {QUERY} where id > 2").to_pylist() == [
        row for row in rows if row["id"] > 2
    ]


def test_an_artifact_that_is_not_what_was_loaded(book: Book) -> None:
    put(book, KEYS[:1])
    [published] = book.ledger.pointers.published(Selection(queries=QUERY))
    [file] = [Path(book.settings.warehouse) / path for path in part_paths(published)]
    nine = write(book.settings.warehouse, KEYS[0], 1, contract=CONTRACTS["1"], rows=9)
    assert book.table(QUERY).num_rows == 10
    (Path(book.settings.warehouse) / part_paths(nine)[0]).replace(file)
    with pytest.raises(Corrupt, match="9 rows, not 10"):
        book.table(QUERY)
    file.write_bytes(b"PAR1 no more")
    with pytest.raises(Corrupt, match="cannot be read"):
        book.table(QUERY)
    file.unlink()
    with pytest.raises(NotFound, match="is gone"):
        book.table(QUERY)


def test_an_unknown_query_names_the_known_ones(book: Book) -> None:
    with pytest.raises(ConfigError, match="no query nothing is configured") as caught:
        book.table("nothing")
    assert "campaign_daily, clicks" in str(caught.value.remedy)


def test_sql_reads_the_tables_it_mentions(book: Book) -> None:
    put(book, KEYS)
    answer = book.sql(
        f"with x as (select * from demo.{QUERY} where customer_id = 'c1')"
        " select count(*) n, min(run_id) r from x"
    )
    assert answer.to_pylist() == [{"n": 30, "r": run_id(1)}]
    assert book.sql("select count(*) n from clicks").to_pylist() == [{"n": 0}]
    with pytest.raises(InvalidInput) as caught:
        book.sql("select * from nothing")
    assert caught.value.remedy == "Tables: campaign_daily, clicks."
    with pytest.raises(InvalidInput, match="syntax"):
        book.sql("selec 1")


def test_coverage_names_every_partition_and_why(book: Book) -> None:
    """R-CON-3: published, behind, pending, failed, hidden, missing; configured customers."""
    put(book, [key(0, 0), key(0, 1), key(0, 2), key(0, 3)])
    book.ledger.judge(
        [accept(key(0, 1), 2), reject(key(0, 2), 1, again="r"), reject(key(0, 3), 1, again="r")]
    )
    book.ledger.requeue([key(0, 3)], actor="me", reason="test")
    book.ledger.judge([reject(key(1, 0), 1, error="no rows"), accept(key(1, 1), 1)])
    until = key(0, 3).logical_date
    kinds = {each.key: each.kind for each in book.coverage(QUERY, until=until)}
    assert len(kinds) == len(CUSTOMERS) * 4
    assert kinds[key(0, 0)] is CoverageKind.PUBLISHED
    assert kinds[key(0, 1)] is CoverageKind.BEHIND
    assert kinds[key(0, 2)] is CoverageKind.FAILED
    assert kinds[key(0, 3)] is CoverageKind.HIDDEN
    assert kinds[key(1, 0)] is CoverageKind.FAILED
    assert kinds[key(1, 1)] is CoverageKind.PENDING
    assert kinds[key(2, 3)] is CoverageKind.MISSING
    assert all(
        each.why for each in book.coverage(QUERY, until=until) if each.kind is not CoverageKind.PUBLISHED
    )
    read = {(each.customer_id, each.logical_date) for each in book.coverage(QUERY) if each.run_id}
    assert runs(book.table(QUERY)).keys() == read


def test_coverage_of_nothing_known_is_empty_as_nothing_is_expected(book: Book) -> None:
    """R-PST-6: customers without a first day have days from the first that the ledger knows."""
    assert book.coverage(QUERY) == []
    assert book.coverage(QUERY, since=FIRST_DAY, until=FIRST_DAY) == []


def test_on_an_object_store(s3_url: str, tmp_path: Path) -> None:
    """The same rows from a bucket, also in SQL, with only what is asked for."""
    with open_book(f"sqlite:///{tmp_path}/book.db", s3_url) as book:
        put(book, KEYS[:2], parts=2)
        put(book, KEYS[2:3], version="2")
        table = book.table(QUERY)
        assert table.num_rows == 30
        assert book.sql(f"select * from {QUERY}").to_pylist() == table.to_pylist()
        assert book.sql(f"select count(*) n from {QUERY} where run_id = 'x'").to_pylist() == [{"n": 0}]


def test_a_read_keeps_its_columns_when_the_contract_is_edited(ledger_url: str, tmp_path: Path) -> None:
    """R-WH-7: whatever the configuration says by now, at a cut and in the present, by Arrow and by SQL."""
    contracts = {version: CONTRACTS[version] for version in ("1", "2")}
    with open_book(ledger_url, tmp_path / "warehouse", contracts) as book:
        book.ledger.contracts.put_in_force(book.queries)
        put(book, KEYS, run=1)
        put(book, KEYS[:2], run=2, version="2")
        book.ledger.pointers.create_cut("then")
        before = {cut: book.table(QUERY, cut=cut) for cut in (None, "then")}
    edited = {version: replace(each, columns=each.columns[:1]) for version, each in contracts.items()}
    for now in (edited, {"2": edited["2"]}):
        with open_book(ledger_url, tmp_path / "warehouse", {"1": contracts["1"], **now}) as later:
            for cut, table in before.items():
                assert later.table(QUERY, cut=cut).equals(table)
                assert later.sql(f"select * from {QUERY}", cut=cut).column_names == table.column_names
