"""The files of a mirror: those of the warehouse where they serve as they are, and else copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import pyarrow.parquet

from sealbook.mirror.table import DataFile, MirrorTable
from sealbook.model.contract import Contract, Query
from sealbook.model.publication import Published
from sealbook.read.schema import KEY_TYPES, OwnNames, Schema, own_names, reconcile
from sealbook.read.table import BlockReader
from sealbook.rows.types import arrow_type
from sealbook.warehouse.encoding import to_parquet
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

COPIES = "copied"
"""The directory of copies, below the root of a table."""


@dataclass(frozen=True)
class Filing:
    """Says of each published partition which files a table has for it; copies what must be copied."""

    query: Query
    table: MirrorTable
    warehouse: PartFiles
    copies: ArtifactStore
    root: str
    """Where the table lies below the root of copies."""

    @cached_property
    def schema(self) -> Schema:
        """The columns of the table: those of a read."""
        return reconcile(self.query)

    @cached_property
    def own_names(self) -> OwnNames:
        """What versions call columns, if not as reads do."""
        return own_names(self.query)

    @cached_property
    def other_names(self) -> dict[str, set[str]]:
        """By column, what files that are referred to call it besides."""
        found: dict[str, set[str]] = {}
        for version in self._referred:
            for shown, own in self.own_names.get(version, {}).items():
                found.setdefault(shown, set()).add(own)
        return found

    @cached_property
    def shape(self) -> str:
        """A digest of what files are referred to by, and as what they are read: if it changes, all does."""
        columns = [f"{name} {arrow_type(each)}" for name, each in self.schema.items()]
        names = [f"{name} {sorted(others)}" for name, others in sorted(self.other_names.items())]
        said = [self.warehouse.url, *columns, *names, f"referred {sorted(self._referred)}"]
        return sha256("\n".join(said).encode()).hexdigest()

    @cached_property
    def _referred(self) -> set[str]:
        """The versions whose files serve as they are."""
        return {version for version, each in self.query.contracts.items() if self._serves(each)}

    def _serves(self, contract: Contract) -> bool:
        shown = self._shown(contract)
        if not self.table.renames and any(name != own for own, name in shown.items()):
            return False
        return all(
            arrow_type(column.type) == arrow_type(self.schema[shown[column.name]])
            or self.table.reads_as(column.type, self.schema[shown[column.name]])
            for column in contract.columns
        )

    def _shown(self, contract: Contract) -> dict[str, str]:
        called = self.query.names_in_reads.get(contract.schema_version, {})
        return {column.name: called.get(column.name, column.name) for column in contract.columns}

    def files_of(self, partitions: Iterable[Published]) -> Iterator[DataFile]:
        """Yield the files of partitions, and write those that are copies; on an object store many at once."""
        for found in self.warehouse.each(self._of, partitions, lambda each: each.bytes):
            yield from found
        for error in self.copies.sync().values():
            raise error

    def _of(self, published: Published) -> list[DataFile]:
        # What shares the files of another run cannot be referred to: no commit may remove a path and add it.
        if published.schema_version not in self._referred or published.files_run_id is not None:
            return self._copied(published)
        paths = part_paths(published)
        if len(paths) == 1:
            return [DataFile(published, paths[0], published.bytes, published.record_count, copied=False)]
        return [self._part(published, path) for path in paths]

    def _part(self, published: Published, path: str) -> DataFile:
        """Look at one of several parts: the ledger knows the size of all of them together."""
        with self.warehouse.open_lazily(path) as file:
            rows = pyarrow.parquet.ParquetFile(file).metadata.num_rows
            return DataFile(published, path, file.size(), rows, copied=False)

    def _copied(self, published: Published) -> list[DataFile]:
        own = {name: each for name, each in self.schema.items() if name not in KEY_TYPES}
        found = []
        for number, rows in enumerate(BlockReader(self.warehouse, own, self.own_names).rows(published)):
            data = to_parquet(rows.combine_chunks())
            path = (
                f"{COPIES}/customer_id={published.customer_id}/logical_date={published.logical_date}"
                f"/run_id={published.run_id}/{number:05d}-{sha256(data).hexdigest()}.parquet"
            )
            self.copies.put(f"{self.root}/{path}", data)
            found.append(DataFile(published, path, len(data), rows.num_rows, copied=True))
        return found
