"""What a partition's run costs the ledger on disk, from its seal to its publication, indexes included.

On PostgreSQL every table has pages once it has a row, and maps of them, close to a megabyte in all: a small
book has few runs to share them. So what each further run adds is measured, too.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import psycopg
from sqlalchemy import make_url

import sealbook.extract.sources
from bench.harness import Result
from sealbook.clock import utc_now
from sealbook.config.catalogue import load_catalogue
from sealbook.ledger import Ledger, migrate, open_ledger
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.artifacts import Artifact, Staged
from sealbook.model.contract import Query
from sealbook.model.partition_events import PartitionSealed, Stage
from sealbook.validate.contracts import validator_version
from sealbook.validate.evidence import content_checks
from sealbook.validate.findings import Content, Evidence
from sealbook.warehouse.layout import location_of
from tests.support.ledger import postgresql_server

SIZES = (1_000, 5_000, 20_000)
QUERY = "campaign_daily"
DAYS = 100
"""Of each customer; a book has many customers, and a few days of each in a run."""
_BATCH = 5_000
_FEW = "What every book has once, first pages and maps of tables, few have to share: further ones take less."

Sizes = dict[str, int]
"""Bytes by table, its indexes included."""


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL, over growing numbers of partitions."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        return [
            *_growing("SQLite", [f"sqlite:///{folder}/{size}.db" for size in SIZES], at_most=1.8),
            *_growing("PostgreSQL", [server.create_database() for _ in SIZES], at_most=2.2),
        ]


def _growing(name: str, urls: list[str], at_most: float) -> Iterator[Result]:
    totals: list[int] = []
    for url, partitions in zip(urls, SIZES, strict=True):
        migrate(url)
        empty = _bytes_by_table(url)
        with open_ledger(url) as ledger:
            publish(ledger, partitions, lambda url=url: vacuum(url))  # type: ignore[misc]
        each = {table: size - empty.get(table, 0) for table, size in _bytes_by_table(url).items()}
        totals.append(sum(each.values()))
        largest = sorted(each.items(), key=lambda item: -item[1])[:5]
        detail = ", ".join(f"{table} {size / partitions:,.0f}" for table, size in largest)
        what = f"a partition's run, {name}, of {partitions:,} published"
        yield _kilobytes(what, totals[-1] / partitions, at_most, detail, _FEW)
    for (fewer, less), (more, all_of_it) in pairwise(zip(SIZES, totals, strict=True)):
        what = f"each further one, {name}, from {fewer:,} to {more:,}"
        yield _kilobytes(what, (all_of_it - less) / (more - fewer), at_most)


def _kilobytes(what: str, size: float, at_most: float, detail: str = "", why: str = "") -> Result:
    return Result(what, size / 1_000, "KB", f"<= {at_most}", size / 1_000 <= at_most, detail, why)


def publish(ledger: Ledger, partitions: int, after_each_batch: Callable[[], None]) -> None:
    """Take partitions through a run as the stages tell of them: sealed, judged by a contract, published."""
    [query] = [query for query in _catalogue() if query.name == QUERY]
    ledger.contracts.put_in_force([query])
    run_id = ledger.open_run()
    steps = ledger.runs.open_steps(Stage.EXTRACT, [run_id])
    keys = list(_keys(partitions))
    for start in range(0, partitions, _BATCH):
        batch = keys[start : start + _BATCH]
        ledger.run_store.append_events([_sealed(key, run_id, query).to_event() for key in batch])
        ledger.judge([_verdict(key, run_id, query) for key in batch])
        ledger.pointers.swap([_staged(key, run_id) for key in batch])
        after_each_batch()
    ledger.runs.close_steps(Stage.EXTRACT, steps)
    ledger.runs.end_runs([run_id])
    ledger.run_store.projector().catch_up()


def _catalogue() -> Iterator[Query]:
    file = Path(sealbook.extract.sources.__file__).parent / "demo.yaml"
    yield from load_catalogue(file, "demo").values()


def _keys(count: int) -> Iterator[PartitionKey]:
    first = date(2026, 1, 1)
    for number in range(count):
        customer = str(1_000_000_000 + number // DAYS * 7_919)
        yield PartitionKey("demo", customer, QUERY, first + timedelta(days=number % DAYS))


def _sealed(key: PartitionKey, run_id: RunId, query: Query) -> PartitionSealed:
    return PartitionSealed(
        key=key,
        run_id=run_id,
        schema_version=query.schema_version,
        record_count=200,
        payload_bytes=31_234,
        payload_sha256=_digest("payload", key),
        query_hash=query.hash,
        extracted_at=utc_now(),
    )


def _verdict(key: PartitionKey, run_id: RunId, query: Query) -> Verdict:
    contract = query.contracts[query.schema_version]
    content = Content(lines=200, rows=200, offending={}, record_count=200)
    return Verdict.accept(
        key,
        run_id,
        schema_version=query.schema_version,
        record_count=200,
        validator_version=validator_version(contract),
        checks=tuple(content_checks(contract, content, Evidence(), ())),
        contract_hash=contract.hash,
    )


def _staged(key: PartitionKey, run_id: RunId) -> Staged:
    artifact = Artifact(key, run_id, "1")
    return Staged(
        artifact,
        record_count=200,
        bytes=9_876,
        digest=_digest("artifact", key),
        location=location_of(artifact),
    )


def _digest(what: str, key: PartitionKey) -> str:
    return sha256(f"{what} {key}".encode()).hexdigest()


def vacuum(url: str) -> None:
    """Do what PostgreSQL does by itself about once a minute: let the room of deleted rows be used again.

    A load deletes what `authority_change` had for it: nearly all the dead rows that a run leaves behind.
    """
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("VACUUM")


def _bytes_by_table(url: str) -> Sizes:
    vacuum(url)
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as server:
            tables = server.execute(
                "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            )
            return dict(tables.fetchall())
    with closing(sqlite3.connect(str(make_url(url).database))) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = file.execute(
            "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name"
        )
        return dict(rows.fetchall())
