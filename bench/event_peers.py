"""What the event store is measured against: bare drivers, and Dagster."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from sealbook.ledger.db.types import utc_text
from sealbook.ledger.events.rows import data_text, row_values
from sealbook.ledger.events.tables import run_event
from sealbook.model.events import RunEvent

Row = tuple[Any, ...]


class BareDriver:
    """Inserts ready rows into the log of a ledger, and does nothing else; each call is durable."""

    def __init__(self, connection: Any, mark: str) -> None:
        columns = run_event.c.keys()[1:]
        self._cursor = connection.cursor()
        self._statement = (
            f"INSERT INTO run_event ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"
        )

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


def ready_rows(events: Iterable[RunEvent], first: int) -> list[Row]:
    """Return rows as a driver takes them, numbered from `first`, so that it has nothing left to think of."""
    return [
        tuple(
            utc_text(value) if isinstance(value, datetime) else value
            for value in row_values(event, data_text(event), number, event.emitted_at)[1:]
        )
        for number, event in enumerate(events, first)
        if event.emitted_at
    ]


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
