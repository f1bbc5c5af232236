"""Runs of partitions, compared in pairs: in this process, or many pairs on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from operator import attrgetter
from typing import TYPE_CHECKING

from sealbook.errors import InvalidInput, Irreconcilable, SealbookError
from sealbook.model import PartitionKey, RunId
from sealbook.model.contract import Contract, Query
from sealbook.model.run_diff import NotCompared, RunChoice, RunDiff
from sealbook.model.selection import Selection
from sealbook.model.widening import common_type
from sealbook.raw import RawReader
from sealbook.read.run_rows import RunPlace, RunRows
from sealbook.read.schema import Schema, own_names
from sealbook.rows.comparing import compare_rows
from sealbook.storage.ahead import ahead
from sealbook.warehouse.part_files import PartFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.ledger.pointers import PointerReader

FEW = 50
"""So many pairs are compared in this process: Spark would take longer to start."""

_MOST_PER_TASK = 50

Compared = RunDiff | NotCompared


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a partition that are to be compared."""

    before: RunPlace
    after: RunPlace

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.after.key


def plan_pairs(
    raw: RawReader,
    pointers: PointerReader,
    selection: Selection,
    before: RunId | None = None,
    after: RunId | None = None,
) -> Iterator[Pair | NotCompared]:
    """Choose two runs of each partition of a selection, in key order; those that are given, if it has them.

    Else `after` is the newest sealed run, and `before` the published one, or that before it (`RunChoice`).
    """
    if selection.runs is not None or selection.statuses is not None:
        raise InvalidInput(
            "runs or statuses are chosen",
            field="selection",
            remedy="Choose partitions, and name the runs apart.",
        )
    stored = {(each.key, each.record.run_id): each for each in pointers.stored_artifacts(selection)}
    published: dict[PartitionKey, list[RunId]] = {}
    for each in pointers.pointer_history(selection):
        published.setdefault(each.key, []).append(each.run_id)
    sealed = {
        key: tuple(run.run_id for run in runs)
        for key, runs in groupby(raw.sealed(selection), attrgetter("key"))
    }
    for key in sorted({*sealed, *published, *selection.keys}):
        choice = RunChoice(sealed.get(key, ()), tuple(published.get(key, ())))
        pair = choice.pair(before, after)
        unknown = [
            each
            for each in (before, after)
            if each is not None and each not in choice.sealed and (key, each) not in stored
        ]
        if unknown:
            yield NotCompared(key, f"it has no sealed run {unknown[0]}")
        elif pair is None:
            has = "one run" if choice.sealed or choice.published else "no sealed run"
            yield NotCompared(key, f"it has {has}: there is nothing to compare")
        else:
            yield Pair(*(RunPlace.of(key, each, stored.get((key, each))) for each in pair))


@dataclass(frozen=True)
class Comparer:
    """Compares pairs: all that a task needs for it."""

    raw: RawReader
    files: PartFiles
    queries: Mapping[tuple[str, str], Query]
    limit: int

    def __call__(self, pairs: Iterable[Pair]) -> list[Compared]:
        """Compare pairs; one that cannot be is told among the others."""
        return [self._compare(each) for each in pairs]

    def _compare(self, pair: Pair) -> Compared:
        try:
            return self.compare(pair)
        except SealbookError as error:
            return NotCompared(pair.key, str(error), failed=True)

    def compare(self, pair: Pair) -> RunDiff:
        """Compare two runs, in the columns that both have."""
        key = pair.key
        query = self.queries.get((key.source, key.query_name))
        if query is None:
            raise InvalidInput.of("query", f"{key.source}/{key.query_name}", "one that is configured")
        one, other = (RunRows(each, query, self.raw, self.files) for each in (pair.before, pair.after))
        columns = _Columns.of(query, one.contract, other.contract)
        names = own_names(query)
        sides = ahead(lambda side: side.read(columns.shared, names), (one, other), at_once=2)
        (before, its), (after, others) = sides
        rows = compare_rows(before, after, columns.primary_key, self.limit)
        return RunDiff(key, its, others, rows, columns.only_before, columns.only_after, columns.incomparable)


@dataclass(frozen=True, slots=True)
class _Columns:
    """What of two contracts can be compared, by the names that reads have."""

    shared: Schema
    primary_key: tuple[str, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    incomparable: tuple[str, ...]

    @classmethod
    def of(cls, query: Query, before: Contract, after: Contract) -> _Columns:
        shown = query.names_in_reads
        was, now = (
            {
                shown.get(each.schema_version, {}).get(column.name, column.name): column.type
                for column in each.columns
            }
            for each in (before, after)
        )
        types = {name: common_type((was[name], now[name])) for name in now if name in was}
        shared = {name: each for name, each in types.items() if each is not None}
        if not shared:
            raise Irreconcilable(
                f"schema_versions {before.schema_version} and {after.schema_version} of {query.name}"
                " have no column that can be compared"
            )
        keys = (
            tuple(shown.get(each.schema_version, {}).get(name, name) for name in each.primary_key)
            for each in (after, before)
        )
        return cls(
            shared,
            next((each for each in keys if each and shared.keys() >= set(each)), ()),
            tuple(name for name in was if name not in now),
            tuple(name for name in now if name not in was),
            tuple(name for name, each in types.items() if each is None),
        )


def compare_all(
    comparer: Comparer, pairs: Sequence[Pair], spark: Callable[[], SparkSession] | None
) -> list[Compared]:
    """Compare pairs, in their order: on Spark where there is one and they are many."""
    if spark is None or len(pairs) <= FEW:
        return comparer(pairs)
    from sealbook.spark.connect import is_connect
    from sealbook.spark.tasks import run_tasks

    session = spark()
    if is_connect(session):  # which cannot run tasks
        return comparer(pairs)
    size = min(_MOST_PER_TASK, ceil(len(pairs) / (2 * session.sparkContext.defaultParallelism)))
    tasks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    found = {each.key: each for done in run_tasks(session, tasks, comparer) for each in done}
    return [found[each.key] for each in pairs]
