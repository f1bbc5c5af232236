"""What both sides of a book say of the status of partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from sealbook.clock import utc_now
from sealbook.config import Settings
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.ledger import LedgerReader
    from sealbook.model import PartitionKey
    from sealbook.model.auto_due import LearnedDue
    from sealbook.model.contract import Query
    from sealbook.model.expectations import Expectations
    from sealbook.model.explanation import Explanation
    from sealbook.model.horizons import Horizons
    from sealbook.model.status_line import StatusCounts
    from sealbook.model.universe import Universe

_EVERYTHING = Selection()


class StatusReads(ABC):
    """Partition status: of a book as of now, of its reading side as of what is projected."""

    settings: Settings

    @property
    @abstractmethod
    def _reads(self) -> LedgerReader: ...

    @property
    @abstractmethod
    def spark(self) -> SparkSession: ...

    @property
    @abstractmethod
    def queries(self) -> list[Query]: ...

    @abstractmethod
    def catch_up(self) -> None:
        """Take the log into what status is read from."""

    def universe(self) -> Universe:
        """Return which partitions there should be (R-PST-6)."""
        from sealbook.status.universe import drift_to_learn_from, universe_of

        reads, sources = self._reads, self.settings.sources
        drift = drift_to_learn_from(sources, reads.pointers, reads.now())
        return universe_of(sources, reads.statuses.first_known(), drift)

    def learned_due(self) -> dict[str, LearnedDue]:
        """Return the due points of each query whose points are learned, and of each class of accounts."""
        from sealbook.model.auto_due import LearnedDue

        return {
            str(name) if of_class is None else f"{name} of class {of_class}": LearnedDue(
                each.due, each.reasons
            )
            for name, asset in self.universe().assets.items()
            for of_class, each in ((None, asset.freshness), *asset.by_class.items())
            if each is not None and each.auto is not None
        }

    def expectations(self, *, horizons: bool = False) -> Expectations:
        """Return what partitions are held against now: the universe, the time, the contracts in force.

        With `horizons` sources are asked how far back they go, which status does not need.
        """
        from sealbook.model.expectations import Expectations
        from sealbook.model.horizons import NO_HORIZONS

        reads, universe = self._reads, self.universe()
        bounds = self.horizons() if horizons else NO_HORIZONS
        return Expectations(universe, reads.now(), reads.contracts.in_force(self.queries), bounds)

    def horizons(self) -> Horizons:
        """Return how far back the configured sources still give their days."""
        from sealbook.extract.horizons import horizons_of

        return horizons_of(self.settings.sources.values(), utc_now().date())

    def status(self, selection: Selection = _EVERYTHING) -> pa.Table:
        """Return the status of every partition that is chosen as an Arrow table, missing ones included."""
        from sealbook.status.listing import iter_lines, status_table

        self.catch_up()
        lines = iter_lines(self._reads.statuses, self.expectations(), selection)
        return status_table(lines, self.settings.scope)

    def status_counts(self, selection: Selection = _EVERYTHING) -> StatusCounts:
        """Count the partitions that are chosen by what is said of them, and by query."""
        self.catch_up()
        return self._reads.statuses.counts(self.expectations(), selection)

    def status_frame(
        self, selection: Selection = _EVERYTHING, spark: SparkSession | None = None
    ) -> DataFrame:
        """Return the same as `status` as a Spark DataFrame."""
        from sealbook.status.listing import spark_frame

        return spark_frame(spark or self.spark, self.status(selection))

    def export_status(self, target: Path, selection: Selection = _EVERYTHING) -> tuple[Path, int]:
        """Write the status as `partition_status.parquet` (ADR-026); return the file, and how many rows."""
        from sealbook.status.listing import export, iter_lines

        self.catch_up()
        lines = iter_lines(self._reads.statuses, self.expectations(), selection)
        return export(lines, self.settings.scope, target)

    def explain(self, key: PartitionKey) -> Explanation:
        """Say why a partition is as it is, what it comes from, and which commands would change it."""
        from sealbook.status.archive import RunArchive
        from sealbook.status.explaining import explain

        self.catch_up()
        archive = RunArchive(self.settings.retention.archive)
        return explain(self._reads, archive, self.expectations(horizons=True), key)
