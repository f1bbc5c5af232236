"""Sealed runs to judge by the thousand, made the quick way, and a validator of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from shutil import copy
from tempfile import mkdtemp

import msgspec
from pyspark.sql import SparkSession

from sealbook.config import SparkSettings
from sealbook.ledger import open_ledger
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.spark.session import spark_session
from sealbook.validate.plan import ValidatePlan, Which
from sealbook.validate.results import Judged
from sealbook.validate.validator import Validator
from tests.support.validation import DAY, QUERY, key, row, seal

CORES = 2
CUSTOMERS = 50
_CHUNK = 10_000


def session() -> SparkSession:
    """Return the session that all contenders on Spark share."""
    return spark_session(SparkSettings(master=f"local[{CORES}]"))


def seal_runs(root: Path, partitions: int, rows: int) -> Path:
    """Seal one run of each partition, so many for each customer, and return where they are."""
    for customer in range(CUSTOMERS):
        payload = b"".join(_lines(customer, rows))
        for number in range(partitions // CUSTOMERS):
            day = DAY + timedelta(days=number)
            seal(root, key(f"c{customer:03}", day), _dated(payload, day))
    return root


def seal_large_run(root: Path, rows: int) -> Path:
    """Seal one run of very many rows, and return where it is."""
    seal(root, key(), b"".join(_lines(0, rows)))
    return root


def _lines(customer: int, rows: int) -> Iterator[bytes]:
    """Yield rows that keep the contract, and differ from each other as real ones do."""
    encode = msgspec.json.Encoder().encode_lines
    for start in range(0, rows, _CHUNK):
        yield encode(
            [
                row(
                    1_000_000_000 + number // 2,
                    segments_device=("MOBILE", "DESKTOP")[number % 2],
                    metrics_impressions=1_000 + number * 7919 % 50_000,
                    metrics_clicks=number * 104_729 % 1_000,
                    metrics_conversions=(number + customer) % 50 / 10,
                    metrics_cost_micros=number * 15_485_863 % 90_000_000,
                )
                for number in range(start, min(start + _CHUNK, rows))
            ]
        )


def _dated(payload: bytes, day: date) -> bytes:
    return payload.replace(DAY.isoformat().encode(), day.isoformat().encode())


class Books:
    """Judges the same runs again and again, each time with a new ledger beside them."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self._folder = folder
        self._spark = spark
        self._empty = Path(mkdtemp(dir=folder)) / "book.db"
        open_ledger(f"sqlite:///{self._empty}", migrate=True).close()

    @contextmanager
    def new(self, root: Path) -> Iterator[Validator]:
        """Open a new, empty ledger and yield a validator that writes to it."""
        book = copy(self._empty, mkdtemp(dir=self._folder))
        with open_ledger(f"sqlite:///{book}") as ledger:
            yield Validator(
                ledger.reader,
                ledger.verdicts,
                ledger.contracts,
                lambda: RawStore.open(root),
                [QUERY],
                lambda: self._spark,
            )


def accept_all(validator: Validator) -> int:
    """Judge all that is new, and return how many runs there were; every one must be accepted."""
    return _accept(validator, validator.plan(Selection()))


def dry_run_all(validator: Validator) -> int:
    """Judge all that is accepted, write nothing, and return how many runs there were."""
    return _accept(validator, validator.plan(Selection(), Which.ACCEPTED, dry_run=True))


def _accept(validator: Validator, plan: ValidatePlan) -> int:
    accepted = 0
    for result in chain.from_iterable(validator.run(plan)):
        assert isinstance(result, Judged)
        assert result.verdict.accepted, result.verdict.error_message
        accepted += 1
    return accepted
