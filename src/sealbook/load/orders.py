"""What is to be staged, and how it is divided among tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from sealbook.errors import SealbookError
from sealbook.load.drifting import Replaced
from sealbook.load.staging import PART_BYTES, NotStaged, Placing, StagingTask, piece_count
from sealbook.model import PartitionKey
from sealbook.model.artifacts import Artifact, StoredArtifact
from sealbook.model.contract import Contract, Query
from sealbook.model.drift import Drift
from sealbook.raw import RawReader
from sealbook.rows.units import Digest, Slice, Unit

_PER_TASK = 250  # few enough that progress shows and a kill loses little
_LEAST_PER_TASK = 50  # to start a task takes as long as to stage so many small ones
_RECORDS_PER_TASK = 100_000
# With fewer records a payload is hardly too large for one task; if it is all the same, it is only slow.
_MAYBE_LARGE = 20_000


@dataclass(frozen=True, slots=True)
class Order:
    """An artifact that is to be staged, as which copy, and whether it is then to be published.

    `earlier` is what this very run was loaded as, if it was; `replaced` is the published run that it is to
    replace.
    """

    artifact: Artifact
    record_count: int
    copy: int
    earlier: StoredArtifact | None
    publishes: bool
    replaced: Replaced | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.artifact.key

    def drift_unknown(self, problem: str) -> Drift | None:
        """Return that the run was not compared with the one that it is to replace, if there is one."""
        return None if self.replaced is None else self.replaced.not_compared(problem)

    @property
    def filed(self) -> Artifact:
        """The artifact whose files they are: its own, or that of a run with the same payload."""
        earlier = self.earlier
        return self.artifact if earlier is None else replace(self.artifact, run_id=earlier.files_run_id)


@dataclass(frozen=True, slots=True)
class StagingTasks:
    """Tasks for a sequence of orders, which are named by their ordinals.

    `units` says how many units each order has; `refused` has those that no contract can be found for.
    """

    tasks: list[StagingTask] = field(default_factory=list)
    units: dict[int, int] = field(default_factory=dict)
    refused: list[NotStaged] = field(default_factory=list)


def divide(
    orders: Sequence[Order],
    queries: Mapping[tuple[str, str], Query],
    raw: RawReader,
    *,
    cores: int,
    part_bytes: int = PART_BYTES,
) -> StagingTasks:
    """Divide orders among tasks: bins of about equal weight, and a task for each piece of a large payload."""
    divided = StagingTasks()
    large = _large(orders, raw, part_bytes)
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for ordinal, order in enumerate(orders):
        groups[order.key.source, order.key.query_name, order.artifact.schema_version].append(ordinal)
    for (source, query_name, version), ordinals in groups.items():
        query = queries.get((source, query_name))
        contract = query.contracts.get(version) if query else None
        if contract is None:
            reason = f"{source}/{query_name} has no contract for schema_version {version!r}"
            divided.refused.extend(NotStaged(ordinal, reason) for ordinal in ordinals)
            continue
        for ordinal in (each for each in ordinals if each in large):
            units = list(_pieces(ordinal, orders[ordinal], large[ordinal], part_bytes))
            divided.tasks.extend(
                StagingTask(contract, (unit,), _placings([unit], orders, is_large=True)) for unit in units
            )
            divided.units[ordinal] = len(units)
        small = [each for each in ordinals if each not in large]
        divided.tasks.extend(_bins(small, orders, contract, cores))
        divided.units.update(dict.fromkeys(small, 1))
    return divided


def _large(orders: Sequence[Order], raw: RawReader, part_bytes: int) -> dict[int, int]:
    """Return the size of each payload that has several pieces, of those that may be large."""

    def size(ordinal: int) -> int:
        artifact = orders[ordinal].artifact
        try:
            return raw.metadata(artifact.key, artifact.run_id).payload_bytes
        except SealbookError:
            return 0  # the task that reads it will say what is wrong

    candidates = [each for each, order in enumerate(orders) if order.record_count >= _MAYBE_LARGE]
    sizes = zip(candidates, raw.each(size, candidates), strict=True)
    return {ordinal: size for ordinal, size in sizes if size > part_bytes}


def _pieces(ordinal: int, order: Order, size: int, part_bytes: int) -> Iterator[Unit]:
    """Yield the slices of a large payload, and its digest, which no slice can check."""
    key, run_id = order.key, order.artifact.run_id
    count = piece_count(size, part_bytes)
    for piece in range(count):
        start = piece * part_bytes
        yield Slice(ordinal, key, run_id, piece, start, min(start + part_bytes, size))
    yield Digest(ordinal, key, run_id, count)


def _bins(
    ordinals: Sequence[int], orders: Sequence[Order], contract: Contract, cores: int
) -> Iterator[StagingTask]:
    # A small plan is spread over all cores, but not into tasks that cost more than their work; a large one
    # into tasks of bounded size.
    least = min(_LEAST_PER_TASK, ceil(len(ordinals) / cores))
    per_task = min(_PER_TASK, max(len(ordinals) // (4 * cores), least))
    units: list[Unit] = []
    records = 0
    for ordinal in ordinals:
        order = orders[ordinal]
        if units and (len(units) >= per_task or records + order.record_count > _RECORDS_PER_TASK):
            yield _task(contract, units, orders)
            units, records = [], 0
        units.append(Unit(ordinal, order.key, order.artifact.run_id))
        records += order.record_count
    if units:
        yield _task(contract, units, orders)


def _task(contract: Contract, units: Sequence[Unit], orders: Sequence[Order]) -> StagingTask:
    replaced = {unit.ordinal: found for unit in units if (found := orders[unit.ordinal].replaced) is not None}
    return StagingTask(contract, tuple(units), _placings(units, orders), replaced)


def _placings(
    units: Iterable[Unit], orders: Sequence[Order], *, is_large: bool = False
) -> dict[int, Placing]:
    """Return how artifacts are written that not the usual holds for: such as were loaded or removed before.

    Whether a large one is there, no one task can tell: each writes its part, unless that is there.
    """
    found = {}
    for unit in units:
        order = orders[unit.ordinal]
        earlier = order.earlier
        if earlier is not None:
            kept = earlier if earlier.kept and not is_large else None
            found[unit.ordinal] = Placing(earlier.format, order.copy, kept, earlier.files_run_id)
        elif order.copy:
            found[unit.ordinal] = Placing(copy=order.copy)
    return found
