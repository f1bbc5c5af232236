"""A query as an Arrow dataset that is planned when it is scanned: of what the scan's filter lets through.

On an object store a scan fetches many artifacts at once: Arrow's own opens few files at a time, and asks for
each several times, for its size, its end, its columns. In a folder Arrow scans, of what was loaded alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from sealbook.errors import SealbookError
from sealbook.model.publication import Published
from sealbook.read.plan import ReadPlan
from sealbook.read.schema import KEY_TYPES, Schema, arrow_schema
from sealbook.read.table import BlockReader, read_in_task
from sealbook.warehouse.checking import PartsCheck
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles

_KEY_FIELDS = {name: pc.field(name) for name in KEY_TYPES}
_PARQUET, _LOCAL = ds.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
_WORD = re.compile(r"\w+")


class PlannedDataset(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """A dataset whose every scan asks for a plan of what its filter lets through."""

    failure: SealbookError | None = None
    """What broke a scan off, in Sealbook's own words; whoever scans says it in others."""

    @classmethod
    def of(cls, files: PartFiles, schema: Schema, plan: Callable[[pc.Expression | None], ReadPlan]) -> Self:
        """Return a dataset of a schema; `plan` may give more than a filter lets through, and never less."""
        dataset = cls([], arrow_schema(schema), _PARQUET, _LOCAL)
        dataset._files, dataset._plan, dataset._scanned = files, plan, []
        return dataset

    _files: PartFiles
    _plan: Callable[[pc.Expression | None], ReadPlan]
    _scanned: list[ReadPlan]

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
        **_: Any,
    ) -> ds.Scanner:
        """Return a scan of some columns, of what a filter lets through; how far ahead it reads is settled."""
        with self._told():
            plan = self._plan(filter)
            # Arrow scans files by the names in them, and knows nothing of lineage.
            if self._files.folder is None or plan.own_names or plan.lineage:
                return self._ahead(plan, columns, filter)
            self._scanned.append(plan)
            return _on_folder(self._files, plan, filter).scanner(columns=columns, filter=filter)

    def find_damage(self) -> None:
        """Read again, after a scan by Arrow broke off; Corrupt names the artifact that cannot be read."""
        for plan in self._scanned:
            reader = BlockReader(self._files, plan.schema, plan.own_names)
            for _ in read_in_task(reader, plan.partitions):
                pass

    def _ahead(
        self, plan: ReadPlan, columns: Sequence[str] | None, wanted: pc.Expression | None
    ) -> ds.Scanner:
        fragments = [
            # They are never opened: a filter chooses among them.
            _PARQUET.make_fragment(str(position), _LOCAL, _said_of(each))
            for position, each in enumerate(plan.partitions)
        ]
        dataset = ds.FileSystemDataset(fragments, plan.arrow_schema, _PARQUET, _LOCAL)
        chosen = [plan.partitions[int(each.path)] for each in dataset.get_fragments(filter=wanted)]
        # A filter does not tell its columns, but every one of them is a word of it.
        words = {*_WORD.findall(str(wanted))} if wanted is not None else set()
        needed = {*(plan.schema if columns is None else columns), *words}
        schema = {name: each for name, each in plan.schema.items() if name in needed}
        if not schema:  # the rows are only counted
            schema = {"run_id": KEY_TYPES["run_id"]}
        batches = self._batches(BlockReader(self._files, schema, plan.own_names, plan.added), chosen)
        return ds.Scanner.from_batches(batches, schema=arrow_schema(schema), columns=columns, filter=wanted)

    def _batches(self, reader: BlockReader, partitions: Sequence[Published]) -> Iterator[pa.RecordBatch]:
        with self._told():
            for table in read_in_task(reader, partitions):
                yield from table.to_batches()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SealbookError as error:
            self.failure = error
            raise


def _on_folder(files: PartFiles, plan: ReadPlan, wanted: pc.Expression | None) -> ds.Dataset:
    """Return what a filter lets through of a plan as Arrow reads it; Corrupt if it is not what was loaded."""
    fragments = [
        _PARQUET.make_fragment(str(files.local_path(path)), _LOCAL, said)
        for each in plan.partitions
        for said in [_said_of(each)]
        for path in part_paths(each)
    ]
    whole = ds.FileSystemDataset(fragments, plan.arrow_schema, _PARQUET, _LOCAL)
    chosen = {each.path: each for each in whole.get_fragments(filter=wanted)}
    for each in plan.partitions:
        _check(files, each, chosen)
    # Of the same fragments, which keep their footers: none is read twice.
    return ds.FileSystemDataset(list(chosen.values()), plan.arrow_schema, _PARQUET, _LOCAL)


def _check(files: PartFiles, published: Published, fragments: Mapping[str, ds.ParquetFileFragment]) -> None:
    """Hold the fragments of an artifact against its load record; a filter has chosen all of them or none."""
    paths = {path: str(files.local_path(path)) for path in part_paths(published)}
    if not fragments.keys() & paths.values():
        return
    check = PartsCheck(published)
    for path, local in paths.items():
        size = files.local_size(path)
        with check.reading(path):
            check.add(path, size, fragments[local].metadata)
    check.finish()


def _said_of(published: Published) -> pc.Expression:
    """Return what names a partition and its run, as a condition that all of its rows keep."""
    source, *others = (field == getattr(published, name) for name, field in _KEY_FIELDS.items())
    for each in others:
        source &= each
    return source
