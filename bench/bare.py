"""The database of a ledger, asked by its driver and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, Self

import psycopg
from sqlalchemy import make_url


class Bare:
    """The driver of a ledger's database, and nothing else."""

    def __init__(self, url: str) -> None:
        self._on_postgresql = url.startswith("postgresql")
        self._connection: Any = (
            psycopg.connect(url, autocommit=True)
            if self._on_postgresql
            else sqlite3.connect(str(make_url(url).database), isolation_level=None)
        )

    def ask(self, statement: str) -> list[Any]:
        """Return all rows of a statement."""
        rows: list[Any] = self._connection.execute(statement).fetchall()
        return rows

    def tidy(self) -> None:
        """Do what the database does by itself after a while."""
        self._connection.execute(
            "VACUUM ANALYZE" if self._on_postgresql else "PRAGMA wal_checkpoint(TRUNCATE)"
        )

    def size(self) -> int:
        """Return how many bytes the status of partitions takes, its indexes and series included."""
        self.tidy()
        if self._on_postgresql:
            tables = "pg_total_relation_size('partition_status') + pg_total_relation_size('status_series')"
            [(size,)] = self.ask(f"SELECT {tables}")
        else:
            [(size,)] = self.ask(
                "SELECT coalesce(sum(pgsize), 0) FROM dbstat"
                " WHERE name IN ('partition_status', 'status_series', 'sqlite_autoindex_status_series_1')"
            )
        return int(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._connection):
            pass
