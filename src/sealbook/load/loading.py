"""One go of the loader: artifacts are staged on Spark, and pointers swapped in batches while that goes on."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from sealbook.errors import Transient
from sealbook.ledger.pointers import Pointers
from sealbook.load.drifting import Replaced
from sealbook.load.orders import Order, divide
from sealbook.load.publishing import load_result, publish
from sealbook.load.results import Loaded, LoadEnding
from sealbook.load.staging import (
    PART_BYTES,
    Intact,
    NotStaged,
    Stager,
    StagingResult,
    StagingTask,
    WrittenPart,
)
from sealbook.model import PartitionKey
from sealbook.model.artifacts import FORMAT, Action, Artifact, Staged, is_unnamed
from sealbook.model.claims import Fences
from sealbook.model.contract import Query
from sealbook.model.drift import Drift
from sealbook.model.failures import ErrorClass
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.words import counted
from sealbook.raw import RawReader
from sealbook.rows.blocks import BLOCK_BYTES
from sealbook.spark.garbage import existing_objects_frozen
from sealbook.spark.session import is_running, task_tries
from sealbook.spark.tasks import run_tasks, why_given_up
from sealbook.warehouse.encoding import digest_of
from sealbook.warehouse.layout import location_of
from sealbook.warehouse.store import ArtifactStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.load.loader import LoadPlan

# A swap competes with the tasks for the cores, so swaps are few; what a kill undoes is a batch at most.
_BATCH = 5_000
_LONGEST_WAIT_SECONDS = 10.0
_MOST_GIVEN_UP = 40
"""Tasks whose worker dies are halved to find the run that does it. Beyond so many, it is not the runs."""


@dataclass(slots=True)
class _Gathered:
    """What has come back of an order so far."""

    outstanding: int
    parts: list[WrittenPart] = field(default_factory=list)
    drift: Drift | None = None
    has_failed: bool = False


class Loading:
    """Carries out one plan."""

    def __init__(
        self,
        pointers: Pointers,
        queries: Mapping[tuple[str, str], Query],
        spark: SparkSession,
        raw: RawReader,
        artifacts: ArtifactStore,
        plan: LoadPlan,
        on_progress: OnProgress = no_progress,
        under: Fences | None = None,
        replaced: Mapping[PartitionKey, Replaced] = MappingProxyType({}),
        *,
        part_bytes: int = PART_BYTES,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._pointers = pointers
        self._spark = spark
        self._on_progress = on_progress
        self._under = under
        self._stager = Stager(raw, artifacts, task_tries(spark), part_bytes, block_bytes)
        self._orders = list(_orders(plan, replaced))
        cores = spark.sparkContext.defaultParallelism
        self._divided = divide(self._orders, queries, raw, cores=cores, part_bytes=part_bytes)
        self._gathered = {ordinal: _Gathered(units) for ordinal, units in self._divided.units.items()}
        self._artifacts = artifacts
        self._batch: list[Staged] = []
        self._refiled: list[tuple[Staged, Loaded]] = []
        self._given_up = 0
        self._swapped = time.monotonic()

    def results(self) -> Generator[list[Loaded], None, None]:
        """Yield what came of each order, once the ledger has it."""
        with existing_objects_frozen():
            yield from self._results()

    def _results(self) -> Iterator[list[Loaded]]:
        if self._divided.refused:
            yield [self._failed(self._orders[each.ordinal], each.reason) for each in self._divided.refused]
        tasks: Sequence[StagingTask] = self._divided.tasks
        while tasks:
            given_up: list[tuple[StagingTask, Exception]] = []
            with closing(run_tasks(self._spark, tasks, self._stager, given_up)) as staged:
                for results in staged:
                    done = list(self._take(results))
                    if any(isinstance(each, NotStaged) and each.unwritable for each in results):
                        done += self._swap()
                        yield done
                        self._artifacts.check_writable()
                        continue
                    if self._is_due():
                        done += self._swap()
                    if done:
                        yield done
            self._given_up += len(given_up)
            if given_up and (self._given_up > _MOST_GIVEN_UP or not is_running(self._spark)):
                yield self._swap()
                error = given_up[-1][1]
                raise Transient(why_given_up(error), remedy="Load again.") from error
            yield list(self._take(_given_up(task, error) for task, error in given_up if len(task.units) == 1))
            tasks = [half for task, _ in given_up for half in task.halves()]
        yield self._swap()

    def _take(self, results: Iterable[StagingResult]) -> Iterator[Loaded]:
        """Note what a task has staged; yield the orders that end without a swap."""
        for result in results:
            order = self._orders[result.ordinal]
            gathered = self._gathered[result.ordinal]
            gathered.outstanding -= 1
            if isinstance(result, Intact):
                yield from self._complete(order, _as_it_was(order), is_intact=True)
            elif isinstance(result, NotStaged):
                if not gathered.has_failed:
                    yield self._failed(order, result.reason, result.error_class)
                gathered.has_failed = True
            else:
                gathered.parts.extend(result.parts)
                gathered.drift = gathered.drift or result.drift
                if not gathered.outstanding and not gathered.has_failed:
                    yield from self._complete_parts(order, gathered)

    def _complete_parts(self, order: Order, gathered: _Gathered) -> Iterator[Loaded]:
        parts = sorted(gathered.parts, key=lambda part: part.number)
        rows = sum(part.rows for part in parts)
        if rows != order.record_count:
            yield self._failed(
                order, f"it has {counted(rows, 'row')}, but was accepted with {order.record_count:,}"
            )
            return
        digests = tuple(part.sha256 for part in parts)
        digest, earlier = digest_of(digests), order.earlier
        if earlier is not None and earlier.digest != digest:
            yield self._failed(
                order,
                f"staged again it has digest {digest}, but was loaded before with {earlier.digest}:"
                " what writes it, such as pyarrow, is another by now. Load it with that of then, or fetch the"
                " partition again",
            )
            return
        staged = Staged(
            order.artifact,
            order.record_count,
            sum(part.bytes for part in parts),
            digest,
            location_of(order.filed),
            len(parts),
            FORMAT if earlier is None else earlier.format,
            order.copy,
            digests if len(digests) > 1 else None,
            None if earlier is None else earlier.record.files_run_id,
            gathered.drift or order.drift_unknown("its payload is too large"),
        )
        yield from self._complete(order, staged, is_intact=False)

    def _complete(self, order: Order, staged: Staged, *, is_intact: bool) -> Iterator[Loaded]:
        self._on_progress(1, rows=order.record_count, size=staged.bytes)
        if order.publishes:
            self._batch.append(staged)
            return
        ending = LoadEnding.UNCHANGED if is_intact else LoadEnding.REBUILT
        result = load_result(order.artifact, ending, record_count=order.record_count, size=staged.bytes)
        if order.earlier is not None and order.earlier.copy != staged.copy:
            self._refiled.append((staged, result))
        else:
            yield result

    def _is_due(self) -> bool:
        return len(self._batch) >= _BATCH or time.monotonic() - self._swapped >= _LONGEST_WAIT_SECONDS

    def _swap(self) -> list[Loaded]:
        """Publish what is staged, in batches of bounded size."""
        refiled, self._refiled = self._refiled, []
        if refiled:
            self._pointers.refile(staged for staged, _ in refiled)
        waiting, self._batch = self._batch, []
        results = [result for _, result in refiled]
        results += [
            result
            for start in range(0, len(waiting), _BATCH)
            for result in self._publish(waiting[start : start + _BATCH])
        ]
        self._swapped = time.monotonic()
        return results

    def _publish(self, batch: list[Staged]) -> list[Loaded]:
        return publish(self._pointers, batch, self._under)

    def _failed(self, order: Order, reason: str, error_class: ErrorClass = ErrorClass.PERMANENT) -> Loaded:
        self._on_progress(1, rows=0, size=0)
        return load_result(order.artifact, LoadEnding.FAILED, reason=reason, error=error_class)


def _given_up(task: StagingTask, error: Exception) -> NotStaged:
    """Say that the worker which stages a unit dies each time; a worker with more memory may not."""
    [unit] = task.units
    return NotStaged(unit.ordinal, why_given_up(error), ErrorClass.TRANSIENT)


def _orders(plan: LoadPlan, replaced: Mapping[PartitionKey, Replaced]) -> Iterator[Order]:
    for item in plan.items:
        if item.action is Action.HIDE:
            continue
        if item.run_id is None or item.schema_version is None or item.record_count is None:
            raise AssertionError(f"{item.key} is to be loaded, but its state names no run")
        artifact = Artifact(item.key, item.run_id, item.schema_version)
        before = replaced.get(item.key)
        yield Order(artifact, item.record_count, item.copy, item.earlier, publishes=True, replaced=before)
    for each in plan.rebuild:
        copy = each.copy + is_unnamed(each.format, each.copy)  # written anew, it gets a name with a digest
        yield Order(each.artifact, each.record.record_count, copy, each, publishes=False)


def _as_it_was(order: Order) -> Staged:
    """Return an artifact whose files are there as they were recorded."""
    earlier = order.earlier
    if earlier is None:
        raise AssertionError(f"{order.artifact} is intact, but has no load record")
    return Staged(
        order.artifact,
        order.record_count,
        earlier.record.bytes,
        earlier.digest,
        earlier.location,
        earlier.parts,
        earlier.format,
        earlier.copy,
        earlier.part_digests,
        earlier.record.files_run_id,
        order.drift_unknown("it was staged before"),
    )
