"""The side of a book that cannot write, and what both sides share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sealbook.book.statuses import StatusReads
from sealbook.config import Settings, SourceSettings, check_selection, find_query
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.ledger import LedgerReader
    from sealbook.model.contract import Query
    from sealbook.model.publication import Coverage
    from sealbook.raw import RawReader
    from sealbook.read.plan import ReadPlan


class Readable(StatusReads):
    """What both sides of a book have: settings, raw partitions, Spark, and what is published."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""

    @cached_property
    def raw(self) -> RawReader:
        """The sealed raw partitions."""
        from sealbook.raw import RawReader

        return RawReader.open(self.settings.raw)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of this process."""
        from sealbook.spark.session import spark_session

        return spark_session(self.settings.spark)

    @property
    def queries(self) -> list[Query]:
        """Every configured query."""
        return [query for source in self.settings.sources.values() for query in source.queries.values()]

    def check(self, selection: Selection) -> None:
        """Refuse names that are neither configured nor known to the ledger."""
        check_selection(self.settings.sources, selection, self._knows)

    def _knows(self, what: str, name: str) -> bool:
        return self._reads.knows(**{what: name})

    def read(
        self,
        query_name: str,
        *,
        spark: SparkSession | None = None,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        scan: str = "auto",
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        runs: str | Collection[str] | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> DataFrame:
        """Return what is published of a query as a Spark DataFrame, as of now or of a cut (R-CON-1).

        `strict` leaves out what is behind; `cut` is a token; a `scan` is chosen by itself.
        """
        from sealbook.read.frame import read_frame

        chosen = Selection(customers=customers, since=since, until=until, runs=runs)
        plan = self._plan_read(query_name, source, chosen, columns, strict=strict, cut=cut)
        return read_frame(spark or self.spark, self.settings.warehouse, plan, scan)

    def table(
        self,
        query_name: str,
        *,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        runs: str | Collection[str] | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> pa.Table:
        """Return the same as an Arrow table, without Spark."""
        from sealbook.read.table import read_table
        from sealbook.warehouse.part_files import PartFiles

        chosen = Selection(customers=customers, since=since, until=until, runs=runs)
        plan = self._plan_read(query_name, source, chosen, columns, strict=strict, cut=cut)
        return read_table(PartFiles(self.settings.warehouse), plan)

    def sql(self, text: str, *, strict: bool = False, cut: str | None = None) -> pa.Table:
        """Answer a question in SQL, in which every configured query is a table, without Spark."""
        from sealbook.read.sql import run_sql
        from sealbook.warehouse.part_files import PartFiles

        files = PartFiles(self.settings.warehouse)
        return run_sql(text, self._reads.pointers, self._recorded_sources(), files, strict=strict, cut=cut)

    def coverage(
        self,
        query_name: str,
        *,
        source: str | None = None,
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> list[Coverage]:
        """Say of every partition of a query what a read gets of it, and why not more (R-CON-3).

        By default: all that are due, and others that the ledger knows. With `until`, days that are not due
        yet, too.
        """
        from sealbook.model.universe import AssetName
        from sealbook.status.coverage import coverage_of

        self.catch_up()
        query = find_query(self.settings.sources, query_name, source)
        chosen = Selection(
            source=query.source, customers=customers, queries=query_name, since=since, until=until
        )
        asset = AssetName(query.source, query.name)
        return list(coverage_of(self._reads, self.universe(), asset, chosen, strict=strict, cut=cut))

    def _recorded_sources(self) -> dict[str, SourceSettings]:
        """Return the sources with the contracts by which accepted runs are read (R-WH-7)."""
        as_recorded = self._reads.contracts.as_recorded
        return {
            name: replace(each, queries={query.name: as_recorded(query) for query in each.queries.values()})
            for name, each in self.settings.sources.items()
        }

    def _plan_read(
        self,
        query_name: str,
        source: str | None,
        selection: Selection,
        columns: Iterable[str] | None,
        *,
        strict: bool,
        cut: str | None,
    ) -> ReadPlan:
        from sealbook.read.plan import plan_read

        query = self._reads.contracts.as_recorded(find_query(self.settings.sources, query_name, source))
        return plan_read(self._reads.pointers, query, selection, columns=columns, strict=strict, cut=cut)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BookReader(Readable):
    """The side of a book that cannot write: hand this to pages and consumers."""

    def __init__(self, settings: Settings, ledger: LedgerReader) -> None:
        super().__init__(settings)
        self.ledger = ledger

    @property
    def _reads(self) -> LedgerReader:
        return self.ledger

    def catch_up(self) -> None:
        """Do nothing: who cannot write reads what is projected; `ledger.statuses.lag()` says how far."""

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()
