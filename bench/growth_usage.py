"""`python -m bench.growth_usage FOLDER LEDGER PARTITIONS`: go the whole way, and print what each stage took.

In a process of its own, with a Spark of its own: neither has seen another size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.demo_book import QUERY, check, chosen, count_rows, demo_book
from bench.usage import Usage, usage_of
from sealbook.book import Book
from sealbook.model.status import Availability
from tests.support.extraction import demo_keys

CUSTOMERS = 100
ROWS = 20
_WARM_DAYS = 2
_COUNT = f"select count(*) as rows, max(metrics_clicks) from {QUERY}"


def main(folder: Path, ledger: str, partitions: int) -> None:
    """Warm up on another book, and measure on this one."""
    days = partitions // CUSTOMERS
    with closing(_book(folder / "warm", f"sqlite:///{folder}/warm.db")) as book:
        _usages(book, folder / "warm", _WARM_DAYS)
    with closing(_book(folder / "store", ledger)) as book:
        print(msgspec.json.encode(_usages(book, folder / "store", days)).decode())


def _book(store: Path, ledger: str) -> Book:
    store.mkdir(parents=True)
    return demo_book(store.parent, ledger, str(store), customers=CUSTOMERS, rows=ROWS)


def _usages(book: Book, store: Path, days: int) -> dict[str, Usage]:
    """Go through the stages, and read what came of it in each way."""
    selection, partitions = chosen(demo_keys(CUSTOMERS, days)), CUSTOMERS * days
    on_spark: dict[str, Callable[[], None]] = {
        "extract": lambda: check(book.extract(selection).sealed, partitions),
        "validate": lambda: check(book.validate(selection).accepted, partitions),
        "load": lambda: check(book.load(selection).published, partitions),
        "read from Spark": lambda: check(count_rows(book.read(QUERY)), partitions * ROWS),
    }
    without: dict[str, Callable[[], None]] = {
        "status": lambda: check(
            book.status_counts(selection).availabilities[Availability.PUBLISHED], partitions
        ),
        "sql": lambda: check(book.sql(_COUNT)["rows"][0].as_py(), partitions * ROWS),
    }
    return {stage: usage_of(work, store) for stage, work in on_spark.items()} | {
        # Java and its workers are there still, and have no part in it.
        stage: replace(usage_of(work, store), java_megabytes=0.0, worker_megabytes=0.0)
        for stage, work in without.items()
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
