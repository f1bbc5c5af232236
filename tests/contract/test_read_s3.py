"""Reads from an object store: a request for each part, many at once, and none for what nobody asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealbook.book import Book
from sealbook.errors import NotFound, SealbookError
from sealbook.warehouse.store import ArtifactStore
from tests.support.published import QUERY, key, open_book, publish
from tests.support.s3 import S3Server

KEYS = [key(customer, day) for customer in range(3) for day in range(20)]


@pytest.fixture
def book(s3_url: str, tmp_path: Path) -> Iterator[Book]:
    """A book with partitions of two versions in a bucket."""
    with open_book(f"sqlite:///{tmp_path}/book.db", s3_url) as book:
        publish(book.ledger, s3_url, KEYS[:40], rows=3)
        publish(book.ledger, s3_url, KEYS[40:], version="2", rows=3)
        yield book


def requests(s3_server: S3Server) -> int:
    """Return how many there were since this was last asked."""
    counted = s3_server.requests
    s3_server.expect(None)
    return counted


def test_a_read_asks_once_for_each_part(book: Book, s3_server: S3Server) -> None:
    """R-CON-1: and gives the partitions in the order of the plan, however they arrive."""
    requests(s3_server)
    table = book.table(QUERY)
    assert requests(s3_server) == len(KEYS)
    order = list(zip(table["customer_id"].to_pylist(), table["logical_date"].to_pylist(), strict=True))
    assert order == [(each.customer_id, each.logical_date) for each in KEYS for _ in range(3)]
    assert book.sql(f"select * from {QUERY}").to_pylist() == table.to_pylist()
    assert requests(s3_server) == len(KEYS)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("select sum(id) n from {} where customer_id = 'c1'", 20),
        ("select sum(id) n from {} where customer_id = 'c1' and logical_date < date '2026-01-03'", 2),
        ("select sum(id) n from {} where schema_version = '2' and clicks >= 0", 20),
        ("select count(*) n from {} where run_id = 'x'", 0),
        ("select count(*) n from {}", 0),
        ("select customer_id, count(*) n from {} group by customer_id order by customer_id", 0),
        ("select max(name) n from {} where clicks > 100", 60),
    ],
)
def test_sql_fetches_only_what_a_question_needs(
    book: Book, s3_server: S3Server, question: str, asked: int
) -> None:
    import duckdb

    table = book.table(QUERY)
    requests(s3_server)
    answer = book.sql(question.format(QUERY))
    assert requests(s3_server) == asked
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("whole", table)
        assert answer.to_pylist() == connection.sql(question.format("whole")).to_arrow_table().to_pylist()


def test_an_artifact_that_is_gone_is_named_by_every_reader(book: Book, s3_url: str) -> None:
    """And not told in DuckDB's words."""
    published = next(iter(book.ledger.pointers.published()))
    store = ArtifactStore.open(s3_url)
    store.delete(store.sizes(published.location))

    def said(error: SealbookError) -> tuple[str, str | None]:
        return str(error), error.remedy

    with pytest.raises(NotFound, match=published.location) as by_table:
        book.table(QUERY)
    with pytest.raises(NotFound, match=published.location) as by_sql:
        book.sql(f"select max(id) from {QUERY}")
    assert said(by_sql.value) == said(by_table.value)
