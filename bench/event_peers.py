"""What the event store is measured against: bare drivers, and Dagster."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from sealbook.ledger.db.types import microseconds
from sealbook.ledger.events.rows import packed_data, stored_values
from sealbook.ledger.events.tables import run_event
from sealbook.model.events import RunEvent

Row = tuple[Any, ...]

_COLUMNS = run_event.c.keys()[1:]  # all but the position, which the database gives


class BareDriver:
    """Inserts ready rows into the log of a ledger, and does nothing else; each call is durable."""

    def __init__(self, connection: Any, mark: str) -> None:
        columns = _COLUMNS
        self._cursor = connection.cursor()
        self.on_postgresql = mark == "%s"
        self._statement = (
            f"INSERT INTO run_event ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"
        )

        self._cursor.execute(
            f"INSERT INTO run_head (run_id, last_seq) VALUES ({mark}, 0) RETURNING number", ("bare",)
        )
        self.run_number: int = self._cursor.fetchone()[0]
        self.next_seq = 1

    def insert_one(self, row: Row) -> None:
        """Insert and commit one row."""
        self._cursor.execute(self._statement, row)

    def insert_many(self, rows: Sequence[Row]) -> None:
        """Insert and commit rows."""
        self._cursor.execute("BEGIN")
        self._cursor.executemany(self._statement, rows)
        self._cursor.execute("COMMIT")


@contextmanager
def bare_driver(url: str) -> Iterator[BareDriver]:
    """Open a ledger's database with its driver alone, in autocommit, the fastest mode of both."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            yield BareDriver(connection, "%s")
    else:
        with closing(sqlite3.connect(str(make_url(url).database), isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            yield BareDriver(connection, "?")


def ready_rows(driver: BareDriver, events: Iterable[RunEvent], first: int) -> list[Row]:
    """Return rows as a driver takes them, numbered from `first`, so that it has nothing left to think of."""
    rows = []
    for number, event in enumerate(events, first):
        if event.persisted_at is None:
            raise AssertionError("a stored event says when it was persisted")
        values = stored_values(event, event.derived, packed_data(event), event.persisted_at)
        values |= {"run_number": driver.run_number, "run_seq": number}
        if driver.on_postgresql:
            values["event_key"] = values["event_key"].hex()
        else:
            values["persisted_at"] = microseconds(event.persisted_at)
        rows.append(tuple(values[name] for name in _COLUMNS))
    return rows


class DagsterInstance:
    """A Dagster instance in a folder, with its default SQLite storage."""

    def __init__(self, folder: Path) -> None:
        import dagster

        self._dagster = dagster
        folder.mkdir()
        self._instance = dagster.DagsterInstance.local_temp(str(folder))

    def report(self, count: int, data: Mapping[str, Any]) -> None:
        """Report so many materializations of an asset, one a partition."""
        for number in range(count):
            materialization = self._dagster.AssetMaterialization(
                "campaign_daily", partition=f"p{number}", metadata=dict(data)
            )
            self._instance.report_runless_asset_event(materialization)

    def report_and_read(self, count: int) -> None:
        """Report the outcome of so many partitions, and read each back."""
        self.report(count, {})
        key = self._dagster.AssetKey("campaign_daily")
        found = self._instance.fetch_materializations(key, limit=count).records
        if {each.partition_key for each in found} != {f"p{number}" for number in range(count)}:
            raise AssertionError("Dagster has lost a partition")
