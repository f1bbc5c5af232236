"""What is published of a query as an Arrow dataset, which other engines scan: DuckDB, Polars, DataFusion."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import pyarrow.compute as pc

from sealbook.ledger.pointers import PublishedReader
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model.contract import Query
from sealbook.model.selection import Selection
from sealbook.read.narrowing import let_through
from sealbook.read.plan import ReadPlan, plan_read
from sealbook.read.scanning import PlannedDataset
from sealbook.read.schema import arrow_schema, reconcilable, with_lineage
from sealbook.warehouse.part_files import PartFiles


def published_dataset(
    pointers: PublishedReader,
    query: Query,
    files: PartFiles,
    *,
    masked: Collection[str] = (),
    strict: bool = False,
    cut: str | None = None,
    lineage: bool = False,
    question: str = "",
) -> PlannedDataset:
    """Return a query as a dataset of which a scan plans only what its filter lets through.

    The pointers must be those of a snapshot: each scan plans by itself, and several threads may scan. A
    `question` in which the constants of filters stand lets more of them be seen.
    """
    columns = {name: each for name, each in reconcilable(query).items() if name not in masked}
    schema = with_lineage(query, columns) if lineage else columns

    @cache  # a question that scans a table twice, whole, plans it once
    def planned(selection: Selection) -> ReadPlan:
        return plan_read(pointers, query, selection, columns=columns, strict=strict, cut=cut, lineage=lineage)

    def plan(wanted: pc.Expression | None) -> ReadPlan:
        if wanted is None:
            return planned(EVERYTHING)
        return planned(let_through(wanted, arrow_schema(schema), query.source, question))

    return PlannedDataset.of(files, schema, plan)
