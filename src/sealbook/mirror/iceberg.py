"""A mirror as an Iceberg table: each batch is one overwrite snapshot, and columns change in its transaction.

Artifacts name columns and have no ids for them, so a table maps names to its columns: also several names to
one, where a column was renamed. What names a partition lies in no artifact: readers take it from the
partition of a file, as the format says.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from sealbook.errors import ConfigError, Conflict, MissingExtra, Permanent, first_line
from sealbook.mirror.table import SHAPE, TOKEN, Batch, Commit, DataFile, HeldFile
from sealbook.model.column_types import ColumnType, DecimalType
from sealbook.model.publication import Published
from sealbook.read.schema import KEY_TYPES, Schema, arrow_schema
from sealbook.storage import s3_endpoint
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction

COLUMNS = "sealbook.columns"
"""The property of a table that says which types its columns have, as contracts name them."""

_MAPPING = "schema.name-mapping.default"
_PROPERTIES = {
    # Whoever expires snapshots must not delete files: most are those of the warehouse.
    "gc.enabled": "false",
    # To commit upon what somebody else committed meanwhile would hide that they did.
    "commit.retry.num-retries": "0",
    "format-version": "2",
}
_PROMOTED = {(ColumnType.INT, ColumnType.BIGINT), (ColumnType.FLOAT, ColumnType.DOUBLE)}
_EPOCH = date(1970, 1, 1)
_ATTEMPTS = 5


class IcebergMirror:
    """An Iceberg table of a catalogue. `root` is where it lies below the location of the mirror."""

    renames = True

    def __init__(
        self, catalog: Catalog, name: tuple[str, str], copies: ArtifactStore, root: str, warehouse: PartFiles
    ) -> None:
        self._catalog = catalog
        self._name = name
        self._location = f"{_spelt(copies)}/{root}"
        self._warehouse = _spelt(warehouse)
        self._table: Table | None = None

    def reads_as(self, own: ColumnType, shown: ColumnType) -> bool:
        """Say whether Iceberg promotes one type to another."""
        return is_promoted(own, shown)

    def latest(self) -> Commit | None:
        """Look at the table anew, and return its latest snapshot; None if it is not there."""
        with self._translated():
            is_there = self._catalog.table_exists(self._name)
            self._table = self._catalog.load_table(self._name) if is_there else None
        if self._table is None:
            return None
        if self._table.location() != self._location:
            raise ConfigError(
                f"the catalogue has a table {self} already, at {self._table.location()}",
                remedy="Give the mirror another catalogue, or another `name` in it.",
            )
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return Commit("none", datetime.fromtimestamp(self._table.metadata.last_updated_ms / 1000, UTC))
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        if snapshot.summary is None or snapshot.schema_id != self._table.metadata.current_schema_id:
            return Commit(str(snapshot.snapshot_id), at)  # somebody changed columns, which makes no snapshot
        said = snapshot.summary
        return Commit(str(snapshot.snapshot_id), at, said.get(TOKEN), said.get(SHAPE))

    def files(self) -> list[HeldFile]:
        """Return what the table holds at its latest snapshot."""
        assert self._table is not None
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return []
        held = []
        with self._translated():
            for manifest in snapshot.manifests(self._table.io):
                for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True):
                    file = entry.data_file
                    values = [file.partition[place] for place in range(len(file.partition))]
                    key = dict(zip(KEY_TYPES, values, strict=False))
                    slot = (str(key.get("customer_id")), _day(key.get("logical_date")))
                    held.append(HeldFile(slot, str(key.get("run_id")), file.file_path, file))
        return held

    def path_of(self, file: DataFile) -> str:
        """Return the path of a file, in full."""
        return f"{self._location if file.copied else self._warehouse}/{file.path}"

    def commit(self, batch: Batch) -> str:
        """Commit one snapshot; Conflict if somebody else has."""
        with self._translated():
            table = self._committed(batch, _ATTEMPTS)
        return str(table.metadata.current_snapshot_id)

    def _committed(self, batch: Batch, attempts: int) -> Table:
        from pyiceberg.exceptions import ValidationException

        metadata = None if self._table is None else self._table.metadata
        transaction = self._begin()
        if batch.whole:
            self._reshape(transaction, batch.schema, batch.names)
        said = {TOKEN: batch.token, SHAPE: batch.shape}
        try:
            with transaction.update_snapshot(snapshot_properties=said).overwrite() as snapshot:
                for held in batch.removed:
                    snapshot.delete_data_file(held.known)
                for file in batch.added:
                    snapshot.append_data_file(_data_file(file, self.path_of(file)))
        except ValidationException:
            # pyiceberg looks for the files in several threads, which share what they compare by: at times it
            # misses one that is there. Nothing is committed yet; on another commit it is not tried again.
            if attempts == 1 or self._table is None or self._table.metadata is not metadata:
                raise
            return self._committed(batch, attempts - 1)
        return transaction.commit_transaction()

    def __str__(self) -> str:
        return ".".join(self._name)

    def _begin(self) -> Transaction:
        """Begin what changes the table, or makes it, at first with the columns that partition it."""
        if self._table is not None:
            return self._table.transaction()
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema as IcebergSchema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import DateType, NestedField, StringType

        keys = list(enumerate(KEY_TYPES.items(), start=1))
        columns = (
            NestedField(number, name, DateType() if each is ColumnType.DATE else StringType())
            for number, (name, each) in keys
        )
        parts = (
            PartitionField(number, 1000 + number, IdentityTransform(), name) for number, (name, _) in keys
        )
        self._catalog.create_namespace_if_not_exists(self._name[:-1])
        return self._catalog.create_table_transaction(
            self._name, IcebergSchema(*columns), self._location, PartitionSpec(*parts)
        )

    def _reshape(
        self, transaction: Transaction, schema: Schema, names: Mapping[str, Collection[str]]
    ) -> None:
        """Give the table the columns of a schema. One that can be kept is, so that older snapshots read."""
        metadata = transaction.table_metadata
        said = msgspec.json.decode(metadata.properties.get(COLUMNS, "{}"), type=dict[str, str])
        there = {column.name for column in metadata.schema().columns}
        renamed = {
            old: name
            for name, others in names.items()
            for old in others
            if name not in there and old in there and old not in schema
        }
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for name in there:
                shown = renamed.get(name, name)
                own = ColumnType(said[name]) if name in said else None
                kept = shown in KEY_TYPES or (
                    own is not None
                    and shown in schema
                    and (own == schema[shown] or is_promoted(own, schema[shown]))
                )
                if not kept:
                    update.delete_column(name)
                elif shown != name:
                    update.rename_column(name, shown)
        with transaction.update_schema() as update:
            update.union_by_name(arrow_schema(schema))
        columns = msgspec.json.encode({name: str(each) for name, each in schema.items()}).decode()
        mapping = transaction.table_metadata.schema().name_mapping.model_dump(by_alias=True)
        for field in mapping:
            field["names"] += sorted(names.get(field["names"][0], ()))
        said_of_names = msgspec.json.encode(mapping).decode()
        transaction.set_properties({**_PROPERTIES, COLUMNS: columns, _MAPPING: said_of_names})

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        try:
            yield
        except (CommitFailedException, ValidationException) as error:
            raise Conflict(
                f"somebody else changed the Iceberg table {self} meanwhile: {first_line(error)}",
                remedy="Run the mirror again: it looks at what is there.",
            ) from error
        except OSError as error:
            raise Permanent(f"the Iceberg table {self} cannot be used: {first_line(error)}") from error
        finally:
            self._catalog.close()  # its connections; it opens others when it is asked again


def open_catalog(mirror: str, properties: Mapping[str, str], ledger_url: str) -> Catalog:
    """Return the catalogue of a mirror: that of the ledger's database, unless its properties name another.

    MissingExtra if pyiceberg is not installed.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise MissingExtra(
            "a mirror in Iceberg needs the package pyiceberg",
            remedy="Install it: pip install 'sealbook[iceberg]'.",
        ) from error
    given = dict(properties) or {"type": "sql", "uri": ledger_url}
    name = given.pop("name", mirror)
    try:
        return load_catalog(name, **{**_s3(), **given})
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"the catalogue of mirror {mirror} cannot be opened: {first_line(error)}",
            remedy="Correct the properties under `catalog`; they are those of pyiceberg.",
        ) from error


def _s3() -> dict[str, str]:
    """Return which S3 server the environment names, as all else here uses it: pyiceberg does not look."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    found = {"s3.endpoint": s3_endpoint(), "s3.region": region}
    return {name: value for name, value in found.items() if value is not None}


def is_promoted(own: ColumnType, shown: ColumnType) -> bool:
    """Say whether readers of Iceberg get values of one type as another, by its rules of promotion."""
    if isinstance(own, DecimalType) and isinstance(shown, DecimalType):
        return own.scale == shown.scale and own.precision <= shown.precision
    return (own, shown) in _PROMOTED


def _data_file(file: DataFile, path: str) -> Any:
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.manifest import DataFileContent, FileFormat

    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=_partition(file.published),
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        spec_id=0,
    )


def _partition(published: Published) -> Any:
    from pyiceberg.typedef import Record

    values = (getattr(published, name) for name in KEY_TYPES)
    return Record(*((each - _EPOCH).days if isinstance(each, date) else str(each) for each in values))


def _day(days: Any) -> date:
    return days if isinstance(days, date) else _EPOCH + timedelta(days=days or 0)


def _spelt(files: PartFiles | ArtifactStore) -> str:
    """Return a root as Iceberg spells it: nothing in a path stands for anything else."""
    return files.url if files.folder is None else f"file://{files.folder}"
