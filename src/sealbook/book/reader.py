"""The side of a book that cannot write, and what both sides share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sealbook.book.checks import check_raw
from sealbook.book.statuses import StatusReads
from sealbook.config import Settings, SourceSettings, check_selection, find_query
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.ledger import LedgerReader
    from sealbook.model.alerts import Alert
    from sealbook.model.contract import Query
    from sealbook.model.publication import Coverage
    from sealbook.raw import RawReader, SealedRun
    from sealbook.read.plan import ReadPlan
    from sealbook.read.sandbox import Sandbox
    from sealbook.validate.infer import Proposal
    from sealbook.validate.trial import Bite

_EVERYTHING = Selection()


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
        from sealbook.spark.session import prepared

        chosen = Selection(customers=customers, since=since, until=until, runs=runs)
        plan = self._plan_read(query_name, source, chosen, columns, strict=strict, cut=cut)
        session = self.spark if spark is None else prepared(spark, self.settings.spark)
        return read_frame(session, self.settings.warehouse, plan, scan)

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

    def sql_within(self, text: str, sandbox: Sandbox) -> tuple[pa.Table, bool]:
        """Answer a question of somebody who may read what is published and nothing else.

        Return the first rows, and whether there are more. Forbidden if it reaches for anything else.
        """
        from sealbook.read.sql import run_sandboxed
        from sealbook.warehouse.part_files import PartFiles

        files = PartFiles(self.settings.warehouse)
        return run_sandboxed(text, self._reads.pointers, self._recorded_sources(), files, sandbox)

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

    def infer_contract(
        self, selection: Selection, *, schema_version: str | None = None, runs: int = 20
    ) -> Proposal:
        """Propose a contract from the sealed runs of a query that are chosen, of so many partitions at most.

        Its version is the next number that the query has not, unless one is given.
        """
        from sealbook.validate.infer import infer_contract

        sealed = list(self.raw.sealed(selection))
        return infer_contract(self.raw, sealed, schema_version or self._next_version(sealed), runs=runs)

    def try_contracts(self, selection: Selection) -> Iterator[Bite]:
        """Seed faults into a sample of an accepted partition of each query, and say which checks bite.

        It is the newest that is chosen of each schema_version. Copies are judged on Spark, in a folder of
        their own; nothing is written to the book. NotFound if none is accepted.
        """
        from sealbook.validate.trial import accepted_samples, try_contract

        check_raw(self.settings, lambda: self.raw)
        queries = {(query.source, query.name): query for query in self.queries}
        for state in accepted_samples(self._reads.states(selection)):
            query = queries.get((state.key.source, state.key.query_name))
            if query is not None and state.current_run_id is not None:
                yield from try_contract(self.spark, self.raw, query, state.key, state.current_run_id)

    def _next_version(self, sealed: Iterable[SealedRun]) -> str:
        names = {(run.key.source, run.key.query_name) for run in sealed}
        queries = (query for query in self.queries if (query.source, query.name) in names)
        taken = {version for query in queries for version in query.contracts}
        return next(str(number) for number in count(1) if str(number) not in taken)

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

    def alerts(self, selection: Selection = _EVERYTHING) -> list[Alert]:
        """Return what somebody should look at, as of what is projected; one may be that this lags."""
        from sealbook.status.alerting import find_alerts

        statuses = self._reads.statuses
        return find_alerts(self._reads, self.expectations(), {statuses.name: statuses.lag()}, selection)

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()
