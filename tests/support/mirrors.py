"""Mirrors of a book that is written without Spark, and the engines of others that read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from sealbook.book import Book
from sealbook.config import MirrorFormat, MirrorSettings
from sealbook.ledger.db.urls import parse_url
from sealbook.mirror.mirroring import Mirrored
from sealbook.mirror.table import TOKEN
from sealbook.model.contract import Contract
from sealbook.model.universe import AssetName
from tests.support.published import CONTRACTS, QUERY, SOURCE, open_book

MIRROR = "lake"
KINDS = ("delta inside", "delta apart", "iceberg")
"""A Delta table within the warehouse names files relative to itself, one elsewhere in full."""


@dataclass
class Lake:
    """A book with a mirror of one of its queries, and how others read that."""

    kind: str
    url: str
    warehouse: str
    location: str
    book: Book
    opened: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def open(
        cls,
        kind: str,
        ledger_url: str,
        root: str | Path,
        contracts: Mapping[str, Contract] = CONTRACTS,
        present: str = "2",
    ) -> Lake:
        """Return a book on a ledger that is there, and below a root."""
        warehouse = f"{root}/warehouse"
        location = warehouse if kind == "delta inside" else f"{root}/mirrored to"
        form = MirrorFormat.ICEBERG if kind == "iceberg" else MirrorFormat.DELTA
        mirror = MirrorSettings(MIRROR, form, location, (AssetName(SOURCE, QUERY),))
        opened = open_book(ledger_url, warehouse, contracts, present)
        book = Book(replace(opened.settings, raw=f"{root}/raw", mirrors={MIRROR: mirror}))
        return cls(kind, ledger_url, warehouse, location, book)

    def run(self, *, rebuild: bool = False, check: bool = False) -> Mirrored:
        """Bring the mirror up to now."""
        [done] = self.book.mirror(MIRROR).run(rebuild=rebuild, check=check)
        assert done.failed is None, done.failed
        return done

    def delta(self, version: int | None = None) -> DeltaTable:
        """Open the table as anybody would."""
        options = {"allow_http": "true"} if self.location.startswith("s3://") else None
        return DeltaTable(f"{self.location}/{SOURCE}/{QUERY}", version=version, storage_options=options)

    def iceberg(self) -> Any:
        """Open the table as anybody would."""
        uri = parse_url(self.url).render_as_string(hide_password=False)
        catalog = load_catalog(MIRROR, type="sql", uri=uri, **self._s3())
        self.opened.callback(catalog.close)
        return catalog.load_table((SOURCE, QUERY))

    def _s3(self) -> dict[str, str]:
        if not self.location.startswith("s3://"):
            return {}
        return {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}

    def close(self) -> None:
        """Close what was opened."""
        self.opened.close()
        self.book.close()

    def rows(self, commit: str | None = None) -> pa.Table:
        """Read the mirror, as it is or at a commit, by an engine that knows nothing of Sealbook."""
        match self.kind:
            case "iceberg":
                return self.iceberg().scan(snapshot_id=None if commit is None else int(commit)).to_arrow()
            case "delta inside":
                return self.delta(None if commit is None else int(commit)).to_pyarrow_table()
        return pa.table(self.delta(None if commit is None else int(commit)).scan().read_all())

    def commits(self) -> list[tuple[str, str | None]]:
        """Return each commit with the token that it names, oldest first."""
        if self.kind == "iceberg":
            found = sorted(self.iceberg().snapshots(), key=lambda each: each.sequence_number)
            return [(str(each.snapshot_id), each.summary.get(TOKEN)) for each in found]
        history = sorted(self.delta().history(), key=lambda each: int(each["version"]))
        return [(str(each["version"]), each.get(TOKEN)) for each in history]

    def paths(self, commit: str) -> set[str]:
        """Return the files that the mirror names at a commit."""
        if self.kind == "iceberg":
            scan = self.iceberg().scan(snapshot_id=int(commit))
            return {each.file.file_path for each in scan.plan_files()}
        return set(self.delta(int(commit)).file_uris())

    def is_equal(self) -> bool:
        """Say whether the mirror has what the book has."""
        return same_rows(self.rows(), self.book.table(QUERY))


def same_rows(found: pa.Table, wanted: pa.Table) -> bool:
    """Say whether two tables have the same columns, of the same types, and rows, in whatever order."""
    if set(found.column_names) != set(wanted.column_names):
        return False
    # Engines have several representations of text and lists in memory, of one type; no number is cast.
    for name in wanted.column_names:
        one, other = found.schema.field(name).type, wanted.schema.field(name).type
        if pa.types.is_primitive(other) and one != other:
            return False
    return _rows(found.select(wanted.column_names).cast(wanted.schema)) == _rows(wanted)


def _rows(table: pa.Table) -> list[str]:
    rows: list[Any] = table.to_pylist()
    return sorted(map(repr, rows))
