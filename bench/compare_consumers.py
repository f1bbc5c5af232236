"""What consumers ask, against bare statements that answer no more than that."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa

from bench.consumer_load import CHANGED, PARTITIONS, VERSIONS, fill
from bench.harness import Result, duration, medians
from bench.mirror_load import mirrored
from sealbook.book import Book
from sealbook.ledger import migrate, open_ledger
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract
from sealbook.model.published_changes import ChangeToken
from sealbook.model.run_diff import RunDiff
from sealbook.model.selection import Selection
from tests.support.ledger import accept, postgresql_server
from tests.support.published import QUERY, key, open_book, write_table

ROUNDS = 7
ROWS = 1_000_000

_TYPES = {
    "id": ColumnType.BIGINT,
    "name": ColumnType.STRING,
    "status": ColumnType.STRING,
    "clicks": ColumnType.BIGINT,
    "cost": ColumnType.DOUBLE,
    "impressions": ColumnType.BIGINT,
}
_ONE_MORE = "One statement more asks which pointers a verdict withdrew; SQLAlchemy takes about a millisecond."
_BARE = (
    "SELECT source, customer_id, query_name, logical_date, run_id, {column} FROM pointer"
    " WHERE {column} > {version} AND source = 'demo' AND query_name = 'campaign_daily'"
)
_JOIN = """
SELECT count(*) FILTER (b.id IS NULL), count(*) FILTER (a.id IS NULL),
    count(*) FILTER (a.id IS NOT NULL AND b.id IS NOT NULL AND (
        a.name IS DISTINCT FROM b.name OR a.status IS DISTINCT FROM b.status
        OR a.clicks IS DISTINCT FROM b.clicks OR a.cost IS DISTINCT FROM b.cost
        OR a.impressions IS DISTINCT FROM b.impressions)),
    sum(a.clicks), sum(b.clicks), sum(a.cost), sum(b.cost), sum(a.impressions), sum(b.impressions)
FROM read_parquet('{before}') AS a FULL OUTER JOIN read_parquet('{after}') AS b ON a.id = b.id
"""


def run() -> list[Result]:
    """Measure each thing that consumers ask."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        return [
            *_diff(Path(folder)),
            *mirrored(Path(folder)),
            *_changes("SQLite", f"sqlite:///{folder}/changes.db"),
            *_changes("PostgreSQL", server.create_database()),
        ]


def _changes(name: str, url: str) -> Iterator[Result]:
    """A hundred partitions that were replaced, of a million."""
    migrate(url)
    with open_ledger(url) as ledger, closing(_bare_connection(url)) as connection:
        fill(ledger)
        before, pointers = ChangeToken(VERSIONS), ledger.reader.pointers
        following = Selection(source="demo", queries=QUERY)

        def ours() -> int:
            return len(pointers.changes(following, before).items)

        def bare() -> int:
            ended = connection.execute(_BARE.format(column="valid_to", version=VERSIONS)).fetchall()
            begun = connection.execute(_BARE.format(column="valid_from", version=VERSIONS)).fetchall()
            connection.rollback()
            assert len(ended) == len(begun)
            return len(begun)

        assert ours() == bare() == CHANGED
        mine, peer = medians(100, ours, bare)
    detail = f"{mine * 1000:,.2f} ms, bare selects {peer * 1000:,.2f} ms"
    what = f"changes of {CHANGED} among {PARTITIONS:,} partitions, {name}"
    yield duration(what, mine, peer, at_most=3, detail=detail, why=_ONE_MORE)


def _bare_connection(url: str) -> Any:
    """Connect by the driver alone."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"))
    return psycopg.connect(url)


def _diff(folder: Path) -> Iterator[Result]:
    """Two runs of which a hundredth of the rows changed, and some came and went."""
    (folder / "raw").mkdir()
    contract = Contract(
        QUERY, "1", tuple(Column(name, each) for name, each in _TYPES.items()), primary_key=("id",)
    )
    opened = open_book(f"sqlite:///{folder}/book.db", folder / "warehouse", {"1": contract}, "1")
    with Book(replace(opened.settings, raw=str(folder / "raw"))) as book:
        for number in (1, 2):
            book.ledger.judge([accept(key(), number, records=ROWS)])
            book.ledger.pointers.swap([write_table(folder / "warehouse", key(), number, _rows(number))])
        before, after = (f"{folder}/warehouse/**/run_id={number:026d}/*.parquet" for number in (1, 2))

        def ours() -> tuple[int, int, int]:
            [found] = book.diff(Selection(keys=[key()]))
            assert isinstance(found, RunDiff)
            return found.rows.removed, found.rows.added, found.rows.changed

        def bare() -> tuple[int, int, int]:
            with duckdb.connect() as connection:
                [found] = connection.sql(_JOIN.format(before=before, after=after)).fetchall()
            return found[0], found[1], found[2]

        assert ours() == bare()
        mine, peer = medians(ROUNDS, ours, bare)
    detail = f"{mine * 1000:,.0f} ms, DuckDB's full outer join {peer * 1000:,.0f} ms"
    yield duration(f"diff of two runs of {ROWS:,} rows", mine, peer, at_most=1.5, detail=detail)


def _rows(seed: int) -> pa.Table:
    ids = range(seed * 500, seed * 500 + ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"campaign {each % 5000}" for each in ids]),
            "status": pa.array([("ON", "OFF", "PAUSED")[each % 3] for each in ids]),
            "clicks": pa.array([each % 1000 + (each % 100 == seed) for each in ids], pa.int64()),
            "cost": pa.array([each % 977 / 7 for each in ids]),
            "impressions": pa.array([each * 7919 % 1_000_003 for each in ids], pa.int64()),
        }
    )
