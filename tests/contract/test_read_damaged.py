"""A file that is not what was loaded is not read: by Arrow, by SQL, on a folder and on an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sealbook.book import Book
from sealbook.errors import Corrupt
from sealbook.model.artifacts import FIRST_FORMAT
from sealbook.model.column_types import ColumnType
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.read.table import BlockReader
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles
from tests.support.damage import DAMAGES, SWAPPED, inflict
from tests.support.published import QUERY, key, open_book, publish

KEYS = [key(customer, day) for customer in range(2) for day in range(3)]
BROKEN, OTHER = KEYS[1], KEYS[4]

READERS: dict[str, Callable[[Book], pa.Table]] = {
    "table": lambda book: book.table(QUERY),
    "a column": lambda book: book.table(QUERY, columns=["id"], customers=["c0"]),
    "sql": lambda book: book.sql(f"select * from {QUERY}"),
    "a filter": lambda book: book.sql(f"select max(id) from {QUERY} where customer_id = 'c0' and share >= 0"),
}


def published_book(tmp_path: Path, warehouse: str) -> Book:
    book = open_book(f"sqlite:///{tmp_path}/book.db", warehouse)
    publish(book.ledger, warehouse, KEYS)
    return book


def check_named(error: Corrupt, published: Published, said: str) -> None:
    """The file, the partition, what is wrong, and the way out."""
    assert published.location in str(error)
    assert f"is not what was loaded as {published.key}" in str(error)
    assert said in str(error)
    assert "`sealbook warehouse verify`" in str(error.remedy)
    assert "`sealbook load --rebuild`" in str(error.remedy)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_not_loaded_is_not_read(raw_url: str, tmp_path: Path, damage: str, reader: str) -> None:
    """R-CON-1: no row of another partition or run under this key; the error names it."""
    with published_book(tmp_path, raw_url) as book:
        published, said = inflict(book, damage, BROKEN, OTHER)
        with pytest.raises(Corrupt) as caught:
            READERS[reader](book)
        check_named(caught.value, published, said)
        assert book.table(QUERY, until=KEYS[0].logical_date).num_rows == 20


def test_parts_in_another_order_are_not_read(tmp_path: Path) -> None:
    """The rows of a partition come in the order of its payload."""
    warehouse = tmp_path / "warehouse"
    with open_book(f"sqlite:///{tmp_path}/book.db", warehouse) as book:
        publish(book.ledger, warehouse, KEYS[:1], parts=2)
        [published] = book.ledger.pointers.published(Selection(queries=QUERY))
        first, second = (warehouse / path for path in part_paths(published))
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(kept)
        with pytest.raises(Corrupt, match=r"its footer says .* 1 1, not .* 1 0"):
            book.table(QUERY)


def test_the_first_format_says_nothing_in_its_footer(tmp_path: Path) -> None:
    """It is read by rows and bytes alone: where these are others, it is not read."""
    warehouse = str(tmp_path / "warehouse")
    with published_book(tmp_path, warehouse) as book:
        published, _ = inflict(book, "of nobody", BROKEN, OTHER)
        [path] = part_paths(published)
        size = (Path(warehouse) / path).stat().st_size
        # Under the name that it had then.
        (Path(warehouse) / path).rename(Path(warehouse) / published.location / "part-00000.parquet")
        reader = BlockReader(PartFiles(warehouse), {"id": ColumnType.BIGINT}, {})
        old = published._replace(format=FIRST_FORMAT, bytes=size)
        assert sum(each.num_rows for each in reader.rows(old)) == 10
        with pytest.raises(Corrupt, match=f"it has {size:,} bytes, not {size + 1:,}"):
            reader.rows(old._replace(bytes=size + 1))
        with pytest.raises(Corrupt, match="it has 10 rows, not 11"):
            reader.rows(old._replace(record_count=11))


def test_a_swap_of_one_partition_leaves_the_others_readable(tmp_path: Path) -> None:
    with published_book(tmp_path, str(tmp_path / "warehouse")) as book:
        inflict(book, SWAPPED, BROKEN, OTHER)
        assert book.table(QUERY, since=KEYS[2].logical_date).num_rows == 20
        assert book.sql(f"select * from {QUERY} where logical_date = '2026-01-03'").num_rows == 20
