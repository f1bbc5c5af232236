"""The stage of loading: plans what differs between state and pointers, stages it, and swaps pointers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta, tzinfo
from typing import TYPE_CHECKING

from sealbook.ledger.pointers import Pointers
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Action, PlanItem, Replacement, StoredArtifact
from sealbook.model.claims import Fences, Lease
from sealbook.model.drift import age_of
from sealbook.model.freshness import day_end
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.model.contract import Query


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load will do: differences to resolve, and published artifacts to rebuild if need be.

    `full` if all states and pointers were compared, not only those noted as changed (R-WH-8). `held` are
    partitions that others are working on, and that are left to them.
    """

    selection: Selection
    items: tuple[PlanItem, ...]
    rebuild: tuple[StoredArtifact, ...] = field(default=(), repr=False)
    full: bool = False
    held: tuple[Lease, ...] = ()

    def besides(self, leases: Sequence[Lease]) -> LoadPlan:
        """Return the plan without what others are working on (R-CTL-4); hiding is in nobody's way."""
        if not leases:
            return self
        planned = {item.key for item in self.items if item.run_id is not None}
        planned |= {each.key for each in self.rebuild}
        held = {lease.key: lease for lease in leases if lease.key in planned}
        return replace(
            self,
            items=tuple(item for item in self.items if item.run_id is None or item.key not in held),
            rebuild=tuple(each for each in self.rebuild if each.key not in held),
            held=tuple(held.values()),
        )

    def __len__(self) -> int:
        return len(self.items) + len(self.rebuild)

    @property
    def counts(self) -> dict[Action, int]:
        """How many partitions each action is for."""
        found = Counter(item.action for item in self.items)
        return {action: found[action] for action in Action}

    @property
    def runs(self) -> set[RunId]:
        """The runs that are to be published."""
        return {item.run_id for item in self.items if item.run_id is not None}


class Loader:
    """Brings pointers to where the states are (R-WH-1). Spark is started only when there is work for it."""

    def __init__(
        self,
        pointers: Pointers,
        queries: Iterable[Query],
        spark: Callable[[], SparkSession],
        *,
        raw_url: str,
        warehouse_url: str,
        zone: Callable[[PartitionKey], tzinfo] = lambda _: UTC,
    ) -> None:
        self._pointers = pointers
        self._queries = {(query.source, query.name): query for query in queries}
        self._spark = spark
        self._raw_url = raw_url
        self._warehouse_url = warehouse_url
        self._zone = zone

    def plan(self, selection: Selection, *, rebuild: bool = False, full: bool = False) -> LoadPlan:
        """Plan to resolve differences; `rebuild` also published artifacts that are not whole.

        Differences are looked for where a change is noted; `full` compares all states and pointers.
        """
        items = tuple(self._pointers.plan(selection, full=full))
        if not rebuild:
            return LoadPlan(selection, items, full=full)
        planned = {(item.key, item.run_id, item.schema_version) for item in items}
        # Of runs that share files, one is enough: they are the same.
        others = {
            (each.key, each.files_run_id, each.record.schema_version): each
            for each in self._pointers.stored_artifacts(selection)
            if (each.key, each.record.run_id, each.record.schema_version) not in planned
        }
        return LoadPlan(selection, items, tuple(others.values()), full)

    def run(
        self, plan: LoadPlan, on_progress: OnProgress = no_progress, under: Fences | None = None
    ) -> Generator[list[Loaded], None, None]:
        """Carry a plan out, and yield results once they are in the ledger, batch by batch.

        A partition that cannot be staged is a result like the others. Closing the iterator stops the load:
        what was published by then stays, and the next load does the rest (R-WH-4). Of what is loaded `under`
        claims, that which is no longer held is left alone (R-CTL-4).
        """
        hidden = self._pointers.hide(plan.selection, full=plan.full)
        if hidden:
            on_progress(len(hidden), rows=0, size=0)
            yield [Loaded(key, LoadEnding.HIDDEN) for key in hidden]
        replacements = self._replacements(plan)
        for shared in self._share(replacements.values(), under):
            on_progress(len(shared), rows=0, size=0)
            yield shared
            done = {each.key for each in shared}
            plan = replace(plan, items=tuple(item for item in plan.items if item.key not in done))
        if plan.rebuild or any(item.action is not Action.HIDE for item in plan.items):
            from sealbook.load.drifting import Replaced
            from sealbook.load.loading import Loading
            from sealbook.raw import RawReader
            from sealbook.warehouse.store import ArtifactStore

            artifacts = ArtifactStore.open(self._warehouse_url)
            artifacts.check(writing=True)
            yield from Loading(
                self._pointers,
                self._queries,
                self._spark(),
                RawReader.open(self._raw_url),
                artifacts,
                plan,
                on_progress,
                under,
                {
                    key: Replaced(each.published, self._age(key, each.run_id))
                    for key, each in replacements.items()
                },
            ).results()

    def _replacements(self, plan: LoadPlan) -> dict[PartitionKey, Replacement]:
        """Return what of a plan is to replace a published run whose files are there."""
        planned = {
            (item.key, item.run_id, item.published_run_id)
            for item in plan.items
            if item.action is Action.REPLACE
        }
        if not planned:
            return {}
        return {
            each.key: each
            for each in self._pointers.replacements(plan.selection, full=plan.full)
            if (each.key, each.run_id, each.published.record.run_id) in planned
        }

    def _share(self, replacements: Collection[Replacement], under: Fences | None) -> Iterator[list[Loaded]]:
        """Publish runs whose payload is that of the published run: that needs no Spark."""
        if not any(each.maybe_same for each in replacements):
            return
        from sealbook.load.sharing import Sharing
        from sealbook.raw import RawReader
        from sealbook.warehouse.part_files import PartFiles

        raw, files = RawReader.open(self._raw_url), PartFiles(self._warehouse_url)
        yield from Sharing(self._pointers, raw, files, self._age, under).results(replacements)

    def _age(self, key: PartitionKey, run_id: RunId) -> timedelta:
        """Return how old a day was when a run of it was opened."""
        return age_of(run_id, day_end(key.logical_date, self._zone(key)))
