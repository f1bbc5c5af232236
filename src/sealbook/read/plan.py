"""What a read gets, decided at one instant: which run of each partition, and which columns (R-CON-1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypedDict, Unpack

import pyarrow as pa

from sealbook.config import SourceSettings
from sealbook.errors import InvalidInput, NotFound
from sealbook.ledger.pointers import PublishedReads
from sealbook.model.contract import Contract, Query
from sealbook.model.publication import Published
from sealbook.read.schema import Schema, arrow_schema, contracts_of, reconcile

FILE_COST_BYTES = 64 * 1024
"""Opening a file takes as long as reading so many bytes."""


class Filters(TypedDict, total=False):
    """What a read may ask for; None asks for all, `since` and `until` are both included."""

    customers: Collection[str] | None
    since: date | None
    until: date | None
    runs: Collection[str] | None
    strict: bool
    cut: str | None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The partitions that a read gets, in key order, each of one run; and what columns of them."""

    query: Query
    contracts: tuple[Contract, ...]
    schema: Schema
    partitions: tuple[Published, ...]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what is read."""
        return arrow_schema(self.schema)


def plan_read(
    pointers: PublishedReads,
    query: Query,
    *,
    columns: Iterable[str] | None = None,
    **filters: Unpack[Filters],
) -> ReadPlan:
    """Ask the ledger, in one statement, what a read gets now or at a cut.

    The columns are those of all versions that are read; if nothing is, those of the query's present version.
    """
    partitions = tuple(pointers.published(query.name, source=query.source, **filters))
    contracts = contracts_of(query, {each.schema_version for each in partitions})
    return ReadPlan(query, tuple(contracts), reconcile(query.name, contracts, columns), partitions)


def check_span(since: date | None, until: date | None) -> None:
    """Refuse a span of days that ends before it begins."""
    if since is not None and until is not None and since > until:
        raise InvalidInput.of("since", since, f"a day that is not after until, {until}")


def find_query(sources: Mapping[str, SourceSettings], name: str, source: str | None = None) -> Query:
    """Return the configured query of a name; `source` is needed only where several have it."""
    if source is not None and source not in sources:
        raise NotFound(f"there is no source {source!r}", remedy=f"Sources: {', '.join(sources) or 'none'}.")
    found = [
        each.queries[name]
        for each in sources.values()
        if name in each.queries and source in (None, each.name)
    ]
    if not found:
        known = sorted({query for each in sources.values() for query in each.queries})
        of_source = f" of {source}" if source else ""
        raise NotFound(
            f"there is no query {name!r}{of_source}", remedy=f"Queries: {', '.join(known) or 'none'}."
        )
    if len(found) > 1:
        raise InvalidInput(
            f"several sources have a query {name}: {', '.join(query.source for query in found)}",
            field="source",
            remedy="Say which by `source`.",
        )
    return found[0]


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
