"""A mirror as a Delta table: each commit is one file of its log, written create-only.

The log is written here and not by deltalake, whose commits can either keep files or change columns: to change
columns it takes every file out and puts it in again at once, which the protocol forbids. deltalake reads the
state of a table, and makes checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa

from sealbook.errors import Conflict, MissingExtra, Permanent, first_line
from sealbook.mirror.table import SHAPE, TOKEN, Batch, Commit, DataFile, HeldFile
from sealbook.model.column_types import ColumnType
from sealbook.read.schema import KEY_TYPES, Schema, arrow_schema
from sealbook.storage import may_use_http, open_storage
from sealbook.warehouse.part_files import PartFiles

if TYPE_CHECKING:
    from deltalake import DeltaTable

_CHECKPOINT_EVERY = 100
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
# A vacuum deletes what the table does not name: within the warehouse that is what cuts and retention keep.
_KEEP_ALL = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
_encode = msgspec.json.Encoder().encode_lines


class DeltaMirror:
    """A Delta table at a location. Within the warehouse it names files relative to itself, else in full."""

    renames = False

    def __init__(self, location: str, root: str, warehouse: PartFiles) -> None:
        try:
            import deltalake  # noqa: F401 - to say at once what is missing
        except ImportError as error:
            raise MissingExtra(
                "a mirror in Delta needs the package deltalake",
                remedy="Install it: pip install 'sealbook[delta]'.",
            ) from error
        self.url, self._storage = open_storage("mirror", location)
        self._root = root
        self._is_inside = self.url == warehouse.url
        self._warehouse = _spelt(warehouse)
        self._table: DeltaTable | None = None

    @property
    def _uri(self) -> str:
        folder = self._storage.folder
        return f"{self.url}/{self._root}" if folder is None else str(folder / self._root)

    def reads_as(self, own: ColumnType, shown: ColumnType) -> bool:  # noqa: ARG002 - by the protocol, never
        """Say no: a table would need a feature for it that not every reader has."""
        return False

    def latest(self) -> Commit | None:
        """Look at the table anew, and return its latest commit; None if it is not there."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        self._table = None
        with self._translated():
            try:
                table = DeltaTable(self._uri, storage_options=self._options())
            except TableNotFoundError:
                return None
            said = next(iter(table.history(1)), {})  # a commit of others need not say anything of itself
        self._table = table
        if table.protocol().min_reader_version > _PROTOCOL["minReaderVersion"]:
            raise Permanent(
                f"somebody gave the Delta table {self._uri} features that a mirror does not write",
                remedy=f"Remove {self._uri}/_delta_log; the next run makes the table anew.",
            )
        at = datetime.fromtimestamp(said["timestamp"] / 1000, UTC) if "timestamp" in said else None
        return Commit(str(table.version()), at, said.get(TOKEN), said.get(SHAPE))

    def files(self) -> list[HeldFile]:
        """Return what the table holds at its latest commit."""
        assert self._table is not None
        with self._translated():
            found = pa.table(self._table.get_add_actions(flatten=True))
        # A table without files has none of these columns, and one that others made anew may lack some.
        names = ("path", "size_bytes", *(f"partition.{name}" for name in KEY_TYPES))
        none = [None] * found.num_rows
        named = [found.column(each).to_pylist() if each in found.column_names else none for each in names]
        held = []
        for path, size, *values in zip(*named, strict=True):
            key = dict(zip(KEY_TYPES, values, strict=True))
            slot = (str(key["customer_id"]), key["logical_date"])
            held.append(HeldFile(slot, str(key["run_id"]), path, (size, key)))
        return held

    def path_of(self, file: DataFile) -> str:
        """Return the path of a file: within the table, or in full."""
        if file.copied:
            return file.path
        if self._is_inside:
            return file.path.removeprefix(f"{self._root}/")
        return f"{self._warehouse}/{file.path}"

    def commit(self, batch: Batch) -> str:
        """Write the next commit; Conflict if somebody else has."""
        version = 0 if self._table is None else self._table.version() + 1
        path = f"{self._root}/_delta_log/{version:020d}.json"
        if self._storage.folder is not None:
            (self._storage.folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not self._storage.create(path, _encode(list(self._actions(batch)))):
            raise Conflict(
                f"somebody else wrote version {version} of the Delta table {self._uri} meanwhile",
                remedy="Run the mirror again: it looks at what is there.",
            )
        if version % _CHECKPOINT_EVERY == _CHECKPOINT_EVERY - 1:
            self._checkpoint()
        return str(version)

    def _actions(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield the lines of a commit. What they say of a file takes the place of what was said before."""
        at = _milliseconds(batch.at)
        said = {TOKEN: batch.token, SHAPE: batch.shape}
        info = {"timestamp": at, "operation": "WRITE", "operationParameters": {}, "engineInfo": "sealbook"}
        yield {"commitInfo": {**info, **said}}
        if self._table is None:
            yield {"protocol": _PROTOCOL}
        if batch.whole:
            yield {"metaData": self._metadata(batch.schema, at)}
        added = set()
        for file in batch.added:
            path = self.path_of(file)
            added.add(path)
            yield {"add": _added(file, path)}
        for held in batch.removed:
            if held.path not in added:
                yield {"remove": _removed(held, at)}

    def _metadata(self, schema: Schema, at: int) -> dict[str, Any]:
        from deltalake import Schema as DeltaSchema

        known = None if self._table is None else self._table.metadata()
        return {
            "id": str(uuid4()) if known is None else str(known.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": DeltaSchema.from_arrow(arrow_schema(schema)).to_json(),
            "partitionColumns": list(KEY_TYPES),
            "createdTime": at if known is None else known.created_time,
            "configuration": _KEEP_ALL if self._is_inside else {},
        }

    def _checkpoint(self) -> None:
        from deltalake import DeltaTable

        with self._translated():
            table = DeltaTable(self._uri, storage_options=self._options())
            table.create_checkpoint()
            table.cleanup_metadata()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise Permanent(
                f"the Delta table {self._uri} cannot be used: {first_line(error)}",
                remedy=f"If its log is damaged, remove {self._uri}/_delta_log: the next run makes it anew.",
            ) from error

    def _options(self) -> dict[str, str]:
        is_s3 = self.url.startswith("s3://")
        return {"allow_http": "true"} if is_s3 and may_use_http() else {}


def _spelt(warehouse: PartFiles) -> str:
    """Return the root of a warehouse as paths in a log are spelt; that of a folder already is."""
    if warehouse.folder is not None:
        return warehouse.url
    scheme, _, rest = warehouse.url.partition("://")
    return f"{scheme}://{quote(rest)}"


def _added(file: DataFile, path: str) -> dict[str, Any]:
    published = file.published
    return {
        "path": path,
        "partitionValues": _texts({name: getattr(published, name) for name in KEY_TYPES}),
        "size": file.bytes,
        "modificationTime": _milliseconds(published.loaded_at),
        "dataChange": True,
        "stats": f'{{"numRecords":{file.rows}}}',
    }


def _removed(held: HeldFile, at: int) -> dict[str, Any]:
    size, key = held.known  # as `files` gave it
    return {
        "path": held.path,
        "deletionTimestamp": at,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": _texts(key),
        "size": size,
    }


def _texts(key: dict[str, Any]) -> dict[str, str]:
    """Return what names a partition as a log has it."""
    return {name: each.isoformat() if isinstance(each, date) else str(each) for name, each in key.items()}


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
