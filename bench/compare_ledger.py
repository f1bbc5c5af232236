"""The ledger against the bare driver: the same rows, the same tables, the same durability."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from bench.harness import Result, duration, megabytes, peak_memory, seconds, speed
from bench.scale import sized
from sealbook.clock import utc_now
from sealbook.ledger import open_ledger
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import microseconds
from sealbook.ledger.states.tables import attempt, partition_state
from sealbook.model import Check, PartitionKey, Verdict
from tests.support.ledger import postgresql_server
from tests.support.runs import new_run_id

BATCH = 1_000
BATCHES = 10
CUSTOMERS = sized(small=200, full=1_000)
DAYS = 1_000
STATES = CUSTOMERS * DAYS
_ONE_CUSTOMER = "1000000100"
CHECKS = tuple(Check(name, passed=True) for name in ("payload", "columns", "primary_key", "date_column"))

Row = tuple[Any, ...]


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        sqlite = f"sqlite:///{folder}/book.db"
        postgresql = server.create_database()
        return [
            _judging("judge 1,000 a call, SQLite", sqlite, at_least=0.15),
            _judging("judge 1,000 a call, PostgreSQL", postgresql, at_least=0.25),
            *_reading("SQLite", sqlite),
            *_reading("PostgreSQL", postgresql),
            _streaming(sqlite),
            _starting(Path(folder)),
        ]


def _judging(name: str, url: str, at_least: float) -> Result:
    """Judge fresh keys, and upsert as many rows into both tables with the driver's executemany."""
    ours, bare = _keys("ours"), _keys("bare")
    run_id = new_run_id()
    rows = [_rows(url, key, run_id, utc_now()) for key in bare]
    with open_ledger(url, migrate=True) as ledger, _driver(url) as connection:
        verdicts = [
            Verdict.accept(
                key, run_id, schema_version="1", record_count=200, validator_version="v1", checks=CHECKS
            )
            for key in ours
        ]

        def judge() -> None:
            for start in range(0, len(verdicts), BATCH):
                ledger.judge(verdicts[start : start + BATCH])

        def upsert() -> None:
            for start in range(0, len(rows), BATCH):
                for index, table in enumerate((partition_state, attempt)):
                    statement = _upsert(table, url)
                    batch = [pair[index] for pair in rows[start : start + BATCH]]
                    connection.cursor().executemany(statement, batch)
                connection.commit()

        mine, theirs = seconds(1, judge, upsert)
    return speed(name, mine, theirs, at_least=at_least, detail=f"{len(verdicts) / mine:,.0f} verdicts/s")


def _reading(name: str, url: str) -> list[Result]:
    with open_ledger(url) as ledger, _driver(url) as connection:
        _fill(url, connection)
        mark = "%s" if url.startswith("postgresql") else "?"
        columns = ", ".join(column.name for column in partition_state.c)
        one_customer = (
            f"SELECT {columns} FROM partition_state WHERE source = 'google_ads' AND customer_id = {mark}"
            f" ORDER BY {', '.join(KEY)}"
        )
        by_status = "SELECT status, count(*) FROM partition_state GROUP BY status"

        def filtered() -> list[Any]:
            return list(ledger.states(source="google_ads", customer_id=_ONE_CUSTOMER))

        def bare() -> list[Row]:
            rows: list[Row] = connection.cursor().execute(one_customer, (_ONE_CUSTOMER,)).fetchall()
            return rows

        assert len(filtered()) == len(bare()) == DAYS
        read = seconds(10, filtered, bare)
        count = seconds(3, ledger.status_counts, lambda: connection.cursor().execute(by_status).fetchall())
    return [
        duration(f"states of one customer in {STATES:,}, {name}", *read, at_most=3),
        duration(f"count by status over {STATES:,}, {name}", *count, at_most=3),
    ]


def _streaming(url: str) -> Result:
    peak = peak_memory(
        "from sealbook.ledger import open_ledger\n"
        f"assert sum(1 for _ in open_ledger({url!r}).states()) >= {STATES}"
    )
    return megabytes(f"peak memory while {STATES:,} states stream", peak, at_most=150)


def _starting(folder: Path) -> Result:
    command = str(Path(sys.executable).parent / "sealbook")
    book = folder / "small"
    subprocess.run([command, "init", str(book)], check=True, capture_output=True)

    def inspect() -> None:
        subprocess.run([command, "state", "inspect"], check=True, capture_output=True, cwd=book)

    def imports() -> None:
        subprocess.run([sys.executable, "-c", "import sqlalchemy, typer"], check=True)

    return duration("`sealbook state inspect` on a small book", *seconds(7, inspect, imports), at_most=2.5)


def _keys(customer_id: str) -> list[PartitionKey]:
    first = date(2000, 1, 1)
    return [
        PartitionKey("bench", customer_id, "campaign_daily", first + timedelta(days=number))
        for number in range(BATCH * BATCHES)
    ]


def _rows(url: str, key: PartitionKey, run_id: str, at: datetime) -> tuple[Row, Row]:
    identity = (key.source, key.customer_id, key.query_name, key.logical_date.isoformat())
    now = at if url.startswith("postgresql") else microseconds(at)
    state = (*identity, "success", run_id, "1", 200, now, None, 1)
    return state, (*identity, 1, 1, now, 200, run_id, "accepted", "1", None, None, None)


def _upsert(table: Any, url: str) -> str:
    mark = "%s" if url.startswith("postgresql") else "?"
    names = [column.name for column in table.c]
    key = [column.name for column in table.primary_key]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    )


def _fill(url: str, connection: Any) -> None:
    """Put all states there, the quick way; those of a customer as if judged in one call."""
    first, run_id, begun = date(2024, 1, 1), new_run_id(), utc_now()
    days = [first + timedelta(days=number) for number in range(DAYS)]
    rows = (
        _rows(url, PartitionKey("google_ads", f"1000000{customer:03}", "campaign_daily", day), run_id, at)[0]
        for customer in range(CUSTOMERS)
        for at in [begun + timedelta(seconds=customer)]
        for day in days
    )
    if url.startswith("postgresql"):
        names = ", ".join(column.name for column in partition_state.c)
        with connection.cursor().copy(f"COPY partition_state ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    else:
        connection.executemany(_upsert(partition_state, url), rows)
    connection.commit()
    connection.execute("ANALYZE")
    connection.commit()


@contextmanager
def _driver(url: str) -> Iterator[Any]:
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            yield connection
    else:
        with closing(sqlite3.connect(str(make_url(url).database))) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
