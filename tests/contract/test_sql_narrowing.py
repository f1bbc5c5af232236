"""Filters of a question choose what is planned, and never what is answered (R-CON-1, R-CON-6)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import duckdb
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealbook.book import Book
from sealbook.errors import NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.model.selection import Selection
from sealbook.read.narrowing import let_through
from sealbook.read.plan import ReadPlan
from sealbook.read.scanning import PlannedDataset
from sealbook.read.schema import arrow_schema, reconcilable
from sealbook.warehouse.part_files import PartFiles
from tests.support.ledger import KEY, OTHER, accept, run_id
from tests.support.pointers import load
from tests.support.published import FIRST_DAY, QUERY, SOURCE, key, open_book, publish

DAYS = [FIRST_DAY + timedelta(days=number) for number in range(4)]
MANY = [f"c{number}" for number in range(1, 40)]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    """Three customers with four days each, of two runs and two versions."""
    folder = tmp_path_factory.mktemp("book")
    url, warehouse = f"sqlite:///{folder}/book.db", folder / "warehouse"
    open_ledger(url, migrate=True).close()
    keys = [key(customer, day) for customer in range(3) for day in range(4)]
    with open_book(url, warehouse) as opened:
        publish(opened.ledger, warehouse, keys, rows=2)
        publish(opened.ledger, warehouse, keys[::3], run=2, version="2", rows=3)
        yield opened


@pytest.fixture(scope="module")
def whole(book: Book) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same rows as a table of DuckDB, which nobody narrows."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("__whole", book.table(QUERY))
        connection.execute("CREATE TABLE whole AS SELECT * FROM __whole")
        yield connection


def listed(values: list[str]) -> str:
    return ", ".join(f"'{each}'" for each in values)


CUSTOMERS = st.sampled_from(["c0", "c1", "c2", "c3", "C1", "c1'' or true", "c-1", "", 'c"1', "2026-01-01"])
RUNS = st.sampled_from([run_id(1), run_id(2), run_id(3), "c1", "x"])
DATES = st.sampled_from([*DAYS, date(2025, 12, 31), date(2026, 2, 1), date(1, 1, 1), date(9999, 12, 31)])
COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"])


def comparisons(column: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(values, min_size=1, max_size=4).map(", ".join)
    return st.one_of(
        st.builds(lambda how, value: f"{column} {how} {value}", COMPARED, values),
        st.builds(lambda how, some: f"{column} {how} ({some})", st.sampled_from(["in", "not in"]), several),
        st.builds(lambda low, high: f"{column} between {low} and {high}", values, values),
        st.sampled_from([f"{column} is null", f"{column} is not null"]),
    )


ATOMS = st.one_of(
    comparisons("customer_id", CUSTOMERS.map(lambda text: f"'{text}'")),
    comparisons("logical_date", DATES.map(lambda day: f"date '{day}'")),
    comparisons("run_id", RUNS.map(lambda text: f"'{text}'")),
    comparisons("source", st.sampled_from(["'demo'", "'c1'"])),
    comparisons("schema_version", st.sampled_from(["'1'", "'2'"])),
    comparisons("clicks", st.sampled_from(["1", "2", "null"])),
    comparisons("name", st.sampled_from(["'c1'", "'r2-0'"])),
    st.sampled_from(
        [
            "customer_id like 'c1%'",
            "customer_id like '%1'",
            "lower(customer_id) = 'c1'",
            "coalesce(name, customer_id) = 'c1'",
            f"customer_id in ({listed(MANY)})",
            f"customer_id not in ({listed(MANY)})",
            "customer_id = 'c' || '1'",
            "customer_id = name",
            "logical_date = '2026-01-02'",
            "logical_date >= date '2026-01-04' - interval 1 day",
            "logical_date = (select max(logical_date) from {t})",
            "year(logical_date) = 2026",
            "logical_date::varchar like '%-02'",
            "true",
            "1 = 0",
        ]
    ),
)
CLAUSES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("case when {} then {} else {} end".format, inner, inner, inner),
    ),
    max_leaves=6,
)
QUESTIONS = [
    "select * from {t} where {one}",
    "select a.* from {t} as a where {one}",
    "select count(*) n, sum(id) s from {t} where {one}",
    "with t as (select * from {t} where {one}) select count(*) n from t where {two}",
    (
        "with t as (select * from {t}) select (select count(*) from t where {one}) a,"
        " (select sum(id) from t where {two}) b"
    ),
    (
        "select count(*) n, sum(a.id + b.clicks) s from (select * from {t} where {one}) a"
        " join (select * from {t} where {two}) b using (customer_id, logical_date)"
    ),
    (
        "select count(*) n, count(b.id) m from (select * from {t} where {one}) a"
        " left join (select * from {t} where {two}) b using (customer_id, logical_date)"
    ),
    "select count(*) n from {t} where {one} and customer_id in (select customer_id from {t} where {two})",
    "select count(*) n from {t} where not exists (select 1 from {t} b where {two}) or {one}",
    (
        "select n from (select 1 g, count(*) n from {t} where {one} union all select 2, count(*) from {t}"
        " where {two}) order by g"
    ),
]


@settings(max_examples=250, deadline=None)
@given(question=st.sampled_from(QUESTIONS), one=CLAUSES, two=CLAUSES)
def test_a_filter_never_changes_the_answer(
    book: Book, whole: duckdb.DuckDBPyConnection, question: str, one: str, two: str
) -> None:
    """Also not in which order the rows of a plain question come."""

    def asked(table: str) -> str:
        return question.format(t=table, one=one.format(t=table), two=two.format(t=table))

    expected = whole.sql(asked("whole")).to_arrow_table()
    answer = book.sql(asked(QUERY))
    assert answer.column_names == expected.column_names
    assert answer.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    ("where", "asked_for"),
    [
        ("customer_id = 'c1'", Selection(customers="c1")),
        ("customer_id = 'c1' and clicks > 3", Selection(customers="c1")),
        ("customer_id in ('c1', 'c2') or customer_id = 'c3'", Selection(customers=["c1", "c2", "c3"])),
        (f"customer_id in ({listed(MANY)})", Selection(customers=sorted(MANY))),
        ("customer_id = '123-456-7890'", Selection(customers=())),
        ("source = 'another'", Selection(customers=(), runs=())),
        (f"run_id = '{run_id(2)}'", Selection(runs=run_id(2))),
        ("logical_date = '2026-01-02'", Selection(since=DAYS[1], until=DAYS[1])),
        (
            "customer_id = 'c1' and logical_date between '2026-01-02' and '2026-01-04'",
            Selection(customers="c1", since=DAYS[1], until=DAYS[3]),
        ),
        (
            (
                "(customer_id = 'c1' and logical_date = '2026-01-01') or"
                " (customer_id = 'c2' and logical_date = '2026-01-03')"
            ),
            Selection(customers=["c1", "c2"], since=DAYS[0], until=DAYS[2]),
        ),
        ("logical_date >= date '2026-01-04' - interval 2 day", Selection(since=DAYS[1])),
        ("customer_id = 'c1' or clicks = 3", Selection()),
        ("not customer_id = 'c1'", Selection()),
        ("customer_id > 'c1'", Selection()),
        ("lower(customer_id) = 'c1'", Selection()),
    ],
)
def test_what_a_filter_lets_through(book: Book, where: str, asked_for: Selection) -> None:
    """By the filter that DuckDB hands to a scan; what a selection cannot say narrows nothing."""
    query = next(each for each in book.queries if each.name == QUERY)
    columns = reconcilable(query)
    question = f"select sum(id) from t where {where}"
    planned: list[Selection] = []

    def plan(wanted: pc.Expression | None) -> ReadPlan:
        chosen = Selection()
        if wanted is not None:
            chosen = let_through(wanted, arrow_schema(columns), SOURCE, question)
        planned.append(chosen)
        return ReadPlan(query, (), columns, ())

    with duckdb.connect() as connection:
        connection.register("t", PlannedDataset.of(PartFiles(book.settings.warehouse), columns, plan))
        connection.sql(question).fetchall()
    assert planned == [asked_for]


def test_a_long_list_narrows_nothing_and_is_answered(book: Book) -> None:
    """Arrow sees through lists of up to fifty."""
    names = [f"c{number}" for number in range(1, 1_000)]
    answer = book.sql(f"select distinct customer_id from {QUERY} where customer_id in ({listed(names)})")
    assert sorted(answer["customer_id"].to_pylist()) == ["c1", "c2"]


def test_an_unknown_cut_is_told_by_a_question(book: Book) -> None:
    with pytest.raises(NotFound, match="there is no cut 'nowhere'"):
        book.sql(f"select * from {QUERY} where customer_id = 'c1'", cut="nowhere")


def test_all_answers_of_a_snapshot_are_of_one_instant(ledger: Ledger) -> None:
    """R-CON-1: whatever is published, replaced or rejected meanwhile, and whichever thread asks."""
    ledger.judge([accept(KEY)])
    load(ledger)
    with ledger.reader.snapshot() as reader, ThreadPoolExecutor(4) as threads:
        before = list(reader.pointers.published())
        assert [each.key for each in before] == [KEY]
        ledger.judge([accept(KEY, 2), accept(OTHER, 2)])
        load(ledger)
        asked = [threads.submit(lambda: list(reader.pointers.published())) for _ in range(8)]
        assert [each.result() for each in asked] == [before] * 8
    assert [each.run_id for each in ledger.pointers.published()] == [run_id(2)] * 2
