"""A book whose partitions are published as real artifacts, written without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from sealbook.book import Book
from sealbook.config import RetentionSettings, Settings, SourceSettings, SparkSettings
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey
from sealbook.model.artifacts import Artifact, Staged
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query
from sealbook.rows.types import arrow_type
from sealbook.warehouse.encoding import digest_of, stamp_of, to_parquet
from sealbook.warehouse.layout import location_of, part_path
from sealbook.warehouse.store import ArtifactStore
from tests.support.ledger import accept, run_id

SOURCE, QUERY = "demo", "campaign_daily"
FIRST_DAY = date(2026, 1, 1)
CUSTOMERS = ("c0", "c1", "c2")


def contract(version: str, **types: str) -> Contract:
    """Return a contract of these columns."""
    columns = tuple(Column(name, ColumnType(each)) for name, each in types.items())
    return Contract(QUERY, version, columns)


CONTRACTS = {
    "1": contract("1", id="int", clicks="int", share="float", at="timestamp", day="date", old="boolean"),
    "2": contract(
        "2", id="bigint", name="string", clicks="bigint", share="double", at="timestamp", day="date"
    ),
}
IRRECONCILABLE = {**CONTRACTS, "3": contract("3", id="bigint", clicks="string")}
"""Versions 1 and 2 can be reconciled; the clicks of 3 with neither."""


def open_book(
    ledger_url: str, warehouse: str | Path, contracts: Mapping[str, Contract] = CONTRACTS, present: str = "2"
) -> Book:
    """Return a book of one source and two queries, on a ledger that is there."""
    clicks = Query(SOURCE, "clicks", "select", "1", {"1": Contract("clicks", "1", contracts["1"].columns)})
    query = Query(SOURCE, QUERY, "select", present, contracts)
    source = SourceSettings(SOURCE, CUSTOMERS, {QUERY: query, "clicks": clicks}, {})
    return Book(
        Settings(
            root=Path(warehouse).parent,
            ledger=ledger_url,
            raw="unused",
            warehouse=str(warehouse),
            sources={SOURCE: source},
            spark=SparkSettings(),
            retention=RetentionSettings(str(Path(warehouse).parent / "archive")),
        )
    )


def write_book(folder: Path) -> Path:
    """Write the files of the same book, for commands; return its folder."""
    contracts = {
        version: {"columns": {column.name: {"type": str(column.type)} for column in each.columns}}
        for version, each in CONTRACTS.items()
    }
    queries = {
        QUERY: {"text": "select", "schema_version": "2", "contracts": contracts},
        "clicks": {"text": "select", "schema_version": "1", "contracts": {"1": contracts["1"]}},
    }
    catalogue = {"source": SOURCE, "api_version": "1", "queries": queries}
    settings = {
        "ledger": "sqlite:///book.db",
        "raw": "raw",
        "warehouse": "warehouse",
        "sources": {SOURCE: {"queries": "queries.yaml", "customers": list(CUSTOMERS)}},
    }
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (folder / "queries.yaml").write_text(yaml.safe_dump(catalogue))
    return folder


def key(customer: int = 0, day: int = 0, query: str = QUERY) -> PartitionKey:
    """Return a partition by numbers."""
    return PartitionKey(SOURCE, f"c{customer}", query, FIRST_DAY + timedelta(days=day))


def rows_of(contract: Contract, rows: int, seed: int = 0) -> pa.Table:
    """Make rows of a contract that say which run they are of, by `clicks`."""
    day = FIRST_DAY + timedelta(days=seed % 7)
    values: dict[ColumnType, Any] = {
        ColumnType.STRING: lambda row: None if row % 5 == 4 else f"r{seed}-{row}",
        ColumnType.BOOLEAN: lambda row: row % 2 == 0,
        ColumnType.FLOAT: lambda row: row / 4,
        ColumnType.DOUBLE: lambda row: row / 3,
        ColumnType.DATE: lambda row: day + timedelta(days=row % 3),
        ColumnType.TIMESTAMP: lambda row: 1_767_225_600_000_000 + row * 1_000_001,
    }
    arrays = {
        column.name: pa.array(
            [
                seed
                if column.name == "clicks" and column.type in (ColumnType.INT, ColumnType.BIGINT)
                else values.get(column.type, lambda row: row)(row)
                for row in range(rows)
            ],
            arrow_type(column.type),
        )
        for column in contract.columns
    }
    return pa.table(arrays)


def write(
    warehouse: str | Path,
    key: PartitionKey,
    run: int,
    *,
    contract: Contract,
    rows: int = 10,
    parts: int = 1,
    copy: int = 0,
) -> Staged:
    """Write the artifact of a run, as a loader does, and return it ready to be published."""
    table = rows_of(contract, rows, run)
    return write_table(warehouse, key, run, table, version=contract.schema_version, parts=parts, copy=copy)


def write_table(
    warehouse: str | Path,
    key: PartitionKey,
    run: int,
    table: pa.Table,
    *,
    version: str = "1",
    parts: int = 1,
    copy: int = 0,
) -> Staged:
    """Write these rows as the artifact of a run."""
    artifact = Artifact(key, run_id(run), version)
    location = location_of(artifact)
    rows = table.num_rows
    store = ArtifactStore.open(warehouse)
    size, step = 0, -(-rows // parts) if rows else 1
    digests = []
    for number in range(parts):
        data = to_parquet(table.slice(number * step, step).combine_chunks(), stamp_of(artifact, number))
        digests.append(sha256(data).hexdigest())
        store.put(part_path(location, number, digests[-1], copy), data)
        size += len(data)
    return Staged(
        artifact,
        record_count=rows,
        bytes=size,
        digest=digest_of(digests),
        location=location,
        parts=parts,
        copy=copy,
        part_digests=tuple(digests) if parts > 1 else None,
    )


def publish(
    ledger: Ledger,
    warehouse: str | Path,
    keys: Iterable[PartitionKey],
    run: int = 1,
    *,
    version: str = "1",
    rows: int = 10,
    parts: int = 1,
) -> None:
    """Accept a run of each partition, write it, and publish it."""
    keys = list(keys)
    ledger.judge([accept(each, run, version=version, records=rows) for each in keys])
    contract = IRRECONCILABLE[version]
    staged = [write(warehouse, each, run, contract=contract, rows=rows, parts=parts) for each in keys]
    ledger.pointers.swap(staged)


def sorted_rows(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return rows in an order of their own, so that two readers can be compared."""
    return sorted(tuple(map(repr, row.values())) for row in rows)
