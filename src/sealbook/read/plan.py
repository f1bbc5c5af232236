"""What a read gets, decided at one instant: which run of each partition, and which columns (R-CON-1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sealbook.model.contract import Contract, Query
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.read.schema import (
    KEY_TYPES,
    LINEAGE_TYPES,
    OwnNames,
    Schema,
    arrow_schema,
    contracts_of,
    own_names,
    reconcile,
    with_lineage,
)

if TYPE_CHECKING:
    from sealbook.ledger.pointers import PublishedReader

EVERYTHING = Selection()

FILE_COST_BYTES = 64 * 1024
"""Opening a file takes as long as reading so many bytes."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The partitions that a read gets, in key order, each of one run; and what columns of them."""

    query: Query
    contracts: tuple[Contract, ...]
    schema: Schema
    partitions: tuple[Published, ...]
    lineage: bool = False
    """Whether the schema has columns of lineage."""

    @property
    def added(self) -> Schema:
        """The columns that no artifact has: what readers say of a partition and its run."""
        return {**KEY_TYPES, **LINEAGE_TYPES} if self.lineage else KEY_TYPES

    @property
    def own_names(self) -> OwnNames:
        """What versions call columns that were renamed, of those that are read."""
        read = {each.schema_version for each in self.partitions}
        return {version: names for version, names in own_names(self.query).items() if version in read}

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what is read."""
        return arrow_schema(self.schema)


def plan_read(
    pointers: PublishedReader,
    query: Query,
    selection: Selection = EVERYTHING,
    *,
    columns: Iterable[str] | None = None,
    strict: bool = False,
    cut: str | None = None,
    lineage: bool = False,
) -> ReadPlan:
    """Ask the ledger, in one statement, what a read of a query gets now or at a cut.

    The columns are those of all versions of the query, whatever is read (R-CON-6), and on request lineage.
    """
    chosen = replace(selection, source=(query.source,), queries=(query.name,))
    partitions = tuple(pointers.published(chosen, strict=strict, cut=cut))
    contracts = contracts_of(query, {each.schema_version for each in partitions})
    schema = reconcile(query, columns)
    if lineage:
        schema = with_lineage(query, schema)
    return ReadPlan(query, tuple(contracts), schema, partitions, lineage)


def in_blocks(partitions: Sequence[Published], most_bytes: int) -> Iterator[Sequence[Published]]:
    """Divide partitions, in their order, into blocks that take about equally long to read."""
    start = size = 0
    for position, each in enumerate(partitions):
        size += each.bytes + each.parts * FILE_COST_BYTES
        if size >= most_bytes:
            yield partitions[start : position + 1]
            start, size = position + 1, 0
    if start < len(partitions):
        yield partitions[start:]
