"""The rows of one run of a partition, whatever became of it: of its artifact, or of its sealed payload."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from sealbook.errors import ConfigError, NotFound
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import StoredArtifact
from sealbook.model.contract import Contract, Query
from sealbook.model.publication import Published
from sealbook.model.run_diff import ComparedRun, RowsFrom
from sealbook.raw import RawReader, SealedPartition
from sealbook.read.schema import OwnNames, Schema, arrow_schema
from sealbook.read.table import BlockReader, conformed
from sealbook.rows.parser import RowParser
from sealbook.warehouse.part_files import PartFiles


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A run of a partition, and its artifact if its files are kept."""

    key: PartitionKey
    run_id: RunId
    artifact: Published | None = None

    @classmethod
    def of(cls, key: PartitionKey, run_id: RunId, stored: StoredArtifact | None) -> RunPlace:
        """Return where a run is, by what is recorded of it."""
        return cls(key, run_id, None if stored is None else stored.published)


@dataclass(frozen=True)
class RunRows:
    """Reads the rows of a run in the columns of several versions."""

    place: RunPlace
    query: Query
    raw: RawReader
    files: PartFiles

    @cached_property
    def _sealed(self) -> SealedPartition:
        return self.raw.read(self.place.key, self.place.run_id)

    @property
    def schema_version(self) -> str:
        """The version that the run is of."""
        artifact = self.place.artifact
        return self._sealed.metadata.schema_version if artifact is None else artifact.schema_version

    @property
    def contract(self) -> Contract:
        """The contract of that version; ConfigError if there is none."""
        found = self.query.contracts.get(self.schema_version)
        if found is None:
            raise ConfigError(
                f"run {self.place.run_id} of {self.place.key} is of schema_version {self.schema_version},"
                " for which there is no contract",
                remedy="Put the contract back into the configuration.",
            )
        return found

    def read(self, schema: Schema, own_names: OwnNames) -> tuple[pa.Table, ComparedRun]:
        """Read all rows; Corrupt if they are not what was loaded, or sealed."""
        if self.place.artifact is not None:
            with suppress(NotFound):  # what was kept may have been deleted by hand
                return self._loaded(self.place.artifact, schema, own_names)
        version = self.schema_version
        block = RowParser(self.contract.columns).parse([self._sealed.payload()])
        [part] = block.parts
        rows = conformed(_renamed(block.table, own_names.get(version, {})), arrow_schema(schema))
        lost = part.lines - part.rows
        return rows, ComparedRun(self.place.run_id, version, rows.num_rows, RowsFrom.PAYLOAD, lost)

    def _loaded(
        self, artifact: Published, schema: Schema, own_names: OwnNames
    ) -> tuple[pa.Table, ComparedRun]:
        parts = BlockReader(self.files, schema, own_names).rows(artifact)
        rows = pa.concat_tables([arrow_schema(schema).empty_table(), *parts])
        run = ComparedRun(artifact.run_id, artifact.schema_version, rows.num_rows, RowsFrom.ARTIFACT)
        return rows, run


def _renamed(rows: pa.Table, called: Mapping[str, str]) -> pa.Table:
    shown = {own: name for name, own in called.items()}
    return rows.rename_columns([shown.get(name, name) for name in rows.column_names])
