"""A plan on an object store as an Arrow dataset, whose scans fetch many artifacts at once.

Arrow's own scan opens few files at a time, and asks for each several times: its size, its end, its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from sealbook.errors import SealbookError
from sealbook.model.publication import Published
from sealbook.read.plan import ReadPlan
from sealbook.read.schema import KEY_TYPES
from sealbook.read.table import read_in_task
from sealbook.warehouse.part_files import PartFiles

_KEY_FIELDS = {name: pc.field(name) for name in KEY_TYPES}
_WORD = re.compile(r"\w+")


def said_of(published: Published) -> pc.Expression:
    """Return what names a partition and its run, as a condition that all of its rows keep."""
    source, *others = (field == getattr(published, name) for name, field in _KEY_FIELDS.items())
    for each in others:
        source &= each
    return source


class AheadDataset(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """A dataset that reads by `read_in_task`. Its fragments are never opened: a filter chooses among them."""

    failure: SealbookError | None = None
    """What broke a scan off, in Sealbook's own words; whoever scans says it in others."""

    @classmethod
    def of(cls, files: PartFiles, plan: ReadPlan) -> Self:
        """Return a plan as a dataset."""
        parquet, nowhere = ds.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
        fragments = [
            parquet.make_fragment(str(position), nowhere, said_of(each))
            for position, each in enumerate(plan.partitions)
        ]
        dataset = cls(fragments, plan.arrow_schema, parquet, nowhere)
        dataset._files, dataset._plan = files, plan
        return dataset

    _files: PartFiles
    _plan: ReadPlan

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
        **_: Any,
    ) -> ds.Scanner:
        """Return a scan of some columns, of what a filter lets through; how far ahead it reads is settled."""
        chosen = [self._plan.partitions[int(each.path)] for each in self.get_fragments(filter=filter)]
        # A filter does not tell its columns, but every one of them is a word of it.
        words = {*_WORD.findall(str(filter))} if filter is not None else set()
        wanted = {*(self._plan.schema if columns is None else columns), *words}
        schema = {name: each for name, each in self._plan.schema.items() if name in wanted}
        if not schema:  # the rows are only counted
            schema = {"run_id": KEY_TYPES["run_id"]}
        batches = self._batches(schema, chosen)
        arrow = pa.schema([self._plan.arrow_schema.field(name) for name in schema])
        return ds.Scanner.from_batches(batches, schema=arrow, columns=columns, filter=filter)

    def _batches(self, schema: Any, partitions: Sequence[Published]) -> Iterator[pa.RecordBatch]:
        try:
            for table in read_in_task(self._files, schema, partitions):
                yield from table.to_batches()
        except SealbookError as error:
            self.failure = error
            raise
