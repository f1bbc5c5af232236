"""A file that is not what was loaded is not read by Spark either, by neither scan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.book import Book
from sealbook.errors import Corrupt
from sealbook.read.frame import Scan
from tests.support.damage import DAMAGES, PAGE, inflict
from tests.support.published import QUERY, key, open_book, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = [key(customer) for customer in range(2)]
REBUILD = "`sealbook load --rebuild`"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """Two partitions of ten rows."""
    with open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse") as opened:
        publish(opened.ledger, tmp_path / "warehouse", KEYS)
        yield opened


@pytest.mark.parametrize("damage", [each for each in DAMAGES if each != PAGE])
def test_sparks_own_scan_is_of_what_was_loaded(damage: str, book: Book, spark: SparkSession) -> None:
    """R-CON-1: the footers are looked at before Spark gets the files."""
    published, said = inflict(book, damage, *KEYS)
    with pytest.raises(Corrupt) as caught:
        book.read(QUERY, spark=spark, scan=Scan.PARQUET)
    assert f"{published.location}" in str(caught.value)
    assert f"not what was loaded as {KEYS[0]}" in str(caught.value)
    assert said in str(caught.value)
    assert REBUILD in str(caught.value.remedy)
    assert book.read(QUERY, spark=spark, scan=Scan.PARQUET, customers=["c2"]).count() == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_data_source_reads_what_was_loaded(damage: str, book: Book, spark: SparkSession) -> None:
    """R-CON-1: found by the task that reads it, and told with the way out."""
    _, said = inflict(book, damage, *KEYS)
    with pytest.raises(Exception, match=Corrupt.__name__) as caught:
        book.read(QUERY, spark=spark, scan=Scan.SOURCE).collect()
    assert f"not what was loaded as {KEYS[0]}" in str(caught.value)
    assert said in str(caught.value)
    assert REBUILD in str(caught.value)
