"""The loader: plans what differs between state and pointers, stages it, and swaps pointers as it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from sealbook.ledger.pointers import PointerFilters, Pointers
from sealbook.load.results import Loaded, LoadEnding, OnProgress, unheard
from sealbook.model.publication import Action, LoadRecord, PlanItem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.model.contract import Query


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load will do: differences to resolve, and published artifacts to stage again if need be."""

    filters: PointerFilters
    items: tuple[PlanItem, ...]
    again: tuple[LoadRecord, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.items) + len(self.again)

    @property
    def counts(self) -> dict[Action, int]:
        """How many partitions each action is for."""
        found = Counter(item.action for item in self.items)
        return {action: found[action] for action in Action}


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
    ) -> None:
        self._pointers = pointers
        self._queries = {(query.source, query.name): query for query in queries}
        self._spark = spark
        self._raw_url = raw_url
        self._warehouse_url = warehouse_url

    def plan(self, *, again: bool = False, **filters: Unpack[PointerFilters]) -> LoadPlan:
        """Plan to resolve every difference; `again`: also to stage published artifacts that are not whole."""
        items = tuple(self._pointers.plan(**filters))
        if not again:
            return LoadPlan(filters, items)
        planned = {(item.key, item.run_id, item.schema_version) for item in items}
        records = (
            record
            for record in self._pointers.load_records(**filters)
            if (record.key, record.run_id, record.schema_version) not in planned
        )
        return LoadPlan(filters, items, tuple(records))

    def load(self, plan: LoadPlan, on_progress: OnProgress = unheard) -> Generator[list[Loaded], None, None]:
        """Carry a plan out, and yield results once they are in the ledger, batch by batch.

        A partition that cannot be staged is a result like the others. Closing the iterator stops the load:
        what was published by then stays, and the next load does the rest (R-WH-4).
        """
        hidden = self._pointers.hide(**plan.filters)
        if hidden:
            on_progress(len(hidden), rows=0, size=0)
            yield [Loaded(key, LoadEnding.HIDDEN) for key in hidden]
        if plan.again or any(item.action is not Action.HIDE for item in plan.items):
            from sealbook.load.loading import Loading
            from sealbook.raw import RawStore
            from sealbook.warehouse.store import ArtifactStore

            yield from Loading(
                self._pointers,
                self._queries,
                self._spark(),
                RawStore.open(self._raw_url),
                ArtifactStore.open(self._warehouse_url),
                plan,
                on_progress,
            ).results()
