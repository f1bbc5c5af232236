"""Artifacts into Arrow tables, without Spark.

An artifact has the columns of its contract. What names its partition and its run is added here, from the plan
and never from a path.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from sealbook.model.column_types import ColumnType
from sealbook.model.publication import Published
from sealbook.read.plan import ReadPlan, in_blocks
from sealbook.read.schema import KEY_TYPES, OwnNames, Schema, arrow_schema
from sealbook.rows.types import arrow_type
from sealbook.storage.ahead import ahead
from sealbook.warehouse.checking import take_parts
from sealbook.warehouse.part_files import PartFiles

BLOCK_BYTES = 16 * 1024 * 1024
"""Artifacts are read and joined up to about this size at once: that makes few large pieces of many small."""

_GROWTH = 4  # as Arrow arrays rows take about so many times the bytes of their artifact


def read_table(files: PartFiles, plan: ReadPlan) -> pa.Table:
    """Read all partitions of a plan, in its order."""
    reader = BlockReader(files, plan.schema, plan.own_names, plan.added)
    blocks = read_blocks(reader, plan.partitions, threads=os.cpu_count() or 1)
    return pa.concat_tables([plan.arrow_schema.empty_table(), *blocks])


def read_in_task(reader: BlockReader, partitions: Sequence[Published]) -> Iterator[pa.Table]:
    """Read some partitions block by block, as one of many tasks that share the machine's cores."""
    return read_blocks(reader, partitions, threads=1)


def read_blocks(reader: BlockReader, partitions: Sequence[Published], threads: int) -> Iterator[pa.Table]:
    """Read partitions block by block, in order, some ahead of what is asked for.

    On a folder so many blocks at once; on an object store as many artifacts as it answers at once.
    """
    blocks = in_blocks(partitions, BLOCK_BYTES)
    if reader.files.folder is None:
        artifacts = reader.files.each(reader.rows, partitions, lambda each: _GROWTH * each.bytes)
        for block in blocks:
            yield reader.join(block, islice(artifacts, len(block)))
    elif threads == 1:
        yield from map(reader.read, blocks)
    else:
        yield from ahead(reader.read, blocks, at_once=threads)


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads partitions, whatever their schema_versions, as one table of a schema.

    Columns that are `added` are those of the plan, and not of artifacts.
    """

    files: PartFiles
    schema: Schema
    own_names: OwnNames
    added: Schema = field(default_factory=lambda: KEY_TYPES)

    @property
    def _own(self) -> pa.Schema:
        """The columns that artifacts have; what names a partition is said by the plan."""
        return arrow_schema({name: each for name, each in self.schema.items() if name not in self.added})

    def rows(self, published: Published) -> list[pa.Table]:
        """Read the parts of an artifact; nothing, where only what names its partition is asked for.

        Corrupt if they are not what was loaded.
        """
        own = self._own
        called = self.own_names.get(published.schema_version, {})
        names = [called.get(name, name) for name in own.names]

        def read(part: pyarrow.parquet.ParquetFile) -> pa.Table:
            rows = part.read(columns=names, use_threads=False)
            if called:
                shown = dict(zip(names, own.names, strict=True))
                rows = rows.rename_columns([shown[name] for name in rows.column_names])
            return rows if rows.schema == own else conformed(rows, own)

        return list(take_parts(self.files, published, read)) if own.names else []

    def read(self, block: Sequence[Published]) -> pa.Table:
        """Read partitions into one table, in one piece."""
        return self.join(block, map(self.rows, block))

    def join(self, block: Sequence[Published], artifacts: Iterable[list[pa.Table]]) -> pa.Table:
        """Join the rows of the partitions of a block into one table, in one piece."""
        own = self._own
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        parts = list(chain.from_iterable(artifacts))
        if own.names:
            table = pa.concat_tables([own.empty_table(), *parts]).combine_chunks()
            columns = dict(zip(table.column_names, table.columns, strict=True))
        counts = [each.record_count for each in block]
        for name in self.schema.keys() & self.added.keys():
            values = [getattr(each, name) for each in block]
            columns[name] = repeat_for_rows(values, counts, self.added[name])
        return pa.Table.from_arrays([columns[name] for name in self.schema], schema=arrow_schema(self.schema))


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give rows the columns of a schema: widened where their version has a narrower type, null where none."""
    return pa.Table.from_arrays(
        [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def repeat_for_rows(values: Sequence[object], counts: Sequence[int], column_type: ColumnType) -> pa.Array:
    """Repeat what is said of each of some partitions for each of its rows, of which there are so many."""
    filled = [value for value, count in zip(values, counts, strict=True) if count]
    ends = pa.array(accumulate(filter(None, counts)), pa.int64())
    run_ends = pa.RunEndEncodedArray.from_arrays(ends, pa.array(filled, arrow_type(column_type)))
    return pc.run_end_decode(run_ends)
