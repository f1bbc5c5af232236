"""All that is published at one instant, by Spark, Arrow and SQL, with what is not and why (R-CON-4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from sealbook.config import Settings, SourceSettings, find_query
from sealbook.errors import Permanent
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.ledger import LedgerReader
    from sealbook.model.contract import Query
    from sealbook.model.publication import Coverage, Freshest
    from sealbook.read.plan import ReadPlan
    from sealbook.read.sandbox import Sandbox


class PartitionsAsked(TypedDict, total=False):
    """Which partitions of a query, by customers and days; both days are included."""

    customers: str | Collection[str] | None
    since: date | str | None
    until: date | str | None


class CoverageAsked(PartitionsAsked, total=False):
    """The same; `source` is needed only where several have a query of that name."""

    source: str | None


class _RunsAsked(PartitionsAsked, total=False):
    runs: str | Collection[str] | None


class TableAsked(CoverageAsked, _RunsAsked, total=False):
    """Which runs of them, and which columns; `lineage` adds `run_id`, `loaded_at` and `behind`."""

    columns: Iterable[str] | None
    lineage: bool


class FrameAsked(TableAsked, total=False):
    """By which session and which scan: both are found by themselves."""

    spark: SparkSession | None
    scan: str


class Snapshot:
    """One instant of all tables. A join of what it gives never sees two.

    Use it as a context manager, or close it: until then it holds a connection to the ledger.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: LedgerReader,
        spark: Callable[[], SparkSession],
        *,
        cut: str | None = None,
        strict: bool = False,
    ) -> None:
        self._settings = settings
        self._spark = spark
        self._cut = cut
        self._strict = strict
        with ExitStack() as opened:
            self._at: LedgerReader | None = opened.enter_context(ledger.snapshot())
            pointers = self._at.pointers  # the first question: this is the instant
            self.version: int = pointers.version() if cut is None else pointers.cut(cut).version
            """The version of the warehouse."""
            self._opened = opened.pop_all()

    @cached_property
    def token(self) -> str:
        """From where changes follow on what is read here: for `book.changes(…, after=token)` (R-CON-5)."""
        return str(self._ledger.pointers.token(self._cut))

    def read(
        self,
        query_name: str,
        *,
        spark: SparkSession | None = None,
        scan: str = "auto",
        **asked: Unpack[TableAsked],
    ) -> DataFrame:
        """Return what is published of a query as a Spark DataFrame, which outlives the snapshot (R-CON-1)."""
        from sealbook.read.frame import read_frame
        from sealbook.spark.session import prepared

        plan = self._plan(query_name, **asked)
        session = self._spark() if spark is None else prepared(spark, self._settings.spark)
        return read_frame(session, self._settings.warehouse, plan, scan)

    def table(self, query_name: str, **asked: Unpack[TableAsked]) -> pa.Table:
        """Return the same as an Arrow table, without Spark."""
        from sealbook.read.table import read_table
        from sealbook.warehouse.part_files import PartFiles

        return read_table(PartFiles(self._settings.warehouse), self._plan(query_name, **asked))

    def dataset(
        self, query_name: str, *, source: str | None = None, lineage: bool = False
    ) -> ds.FileSystemDataset:
        """Return the same as an Arrow dataset, for other engines: a scan reads what its filter lets through.

        It is scanned while the snapshot is open.
        """
        from sealbook.read.dataset import published_dataset
        from sealbook.warehouse.part_files import PartFiles

        return published_dataset(
            self._ledger.pointers,
            self._query(query_name, source),
            PartFiles(self._settings.warehouse),
            strict=self._strict,
            cut=self._cut,
            lineage=lineage,
        )

    def sql(self, text: str, *, lineage: bool = False) -> pa.Table:
        """Answer a question in SQL, in which every configured query is a table, without Spark."""
        from sealbook.read.sql import run_sql
        from sealbook.warehouse.part_files import PartFiles

        return run_sql(
            text,
            self._ledger.pointers,
            self._recorded_sources(),
            PartFiles(self._settings.warehouse),
            strict=self._strict,
            cut=self._cut,
            lineage=lineage,
        )

    def sql_within(self, text: str, sandbox: Sandbox) -> tuple[pa.Table, bool]:
        """Answer a question of somebody who may read what is published and nothing else.

        Return the first rows, and whether there are more. Forbidden if it reaches for anything else.
        """
        from sealbook.read.sql import run_sandboxed
        from sealbook.warehouse.part_files import PartFiles

        return run_sandboxed(
            text,
            self._ledger.pointers,
            self._recorded_sources(),
            PartFiles(self._settings.warehouse),
            sandbox,
            strict=self._strict,
            cut=self._cut,
        )

    def coverage(
        self, query_name: str, *, source: str | None = None, **asked: Unpack[PartitionsAsked]
    ) -> list[Coverage]:
        """Say of every partition of a query what a read gets of it, and why not more (R-CON-3)."""
        from sealbook.model.universe import AssetName
        from sealbook.status.coverage import coverage_of
        from sealbook.status.universe import universe_of

        ledger = self._ledger
        query = find_query(self._settings.sources, query_name, source)
        universe = universe_of(self._settings.sources, ledger.statuses.first_known())
        chosen = Selection(source=query.source, queries=query_name, **asked)
        asset = AssetName(query.source, query.name)
        return list(coverage_of(ledger, universe, asset, chosen, strict=self._strict, cut=self._cut))

    def freshest(self) -> list[Freshest]:
        """Return of each query that can be read now how much, up to which day, and when it was published."""
        return self._ledger.pointers.freshest()

    def close(self) -> None:
        """Let go of the connection."""
        self._at = None
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _ledger(self) -> LedgerReader:
        if self._at is None:
            raise Permanent("the snapshot is closed", remedy="Open another: `book.snapshot()`.")
        return self._at

    def _query(self, query_name: str, source: str | None) -> Query:
        """Return a query with the contracts by which accepted runs are read (R-WH-7)."""
        return self._ledger.contracts.as_recorded(find_query(self._settings.sources, query_name, source))

    def _recorded_sources(self) -> dict[str, SourceSettings]:
        """Return the sources, their queries with such contracts."""
        as_recorded = self._ledger.contracts.as_recorded
        return {
            name: replace(each, queries={query.name: as_recorded(query) for query in each.queries.values()})
            for name, each in self._settings.sources.items()
        }

    def _plan(
        self,
        query_name: str,
        *,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        lineage: bool = False,
        **chosen: Unpack[_RunsAsked],
    ) -> ReadPlan:
        from sealbook.read.plan import plan_read

        return plan_read(
            self._ledger.pointers,
            self._query(query_name, source),
            Selection(**chosen),
            columns=columns,
            strict=self._strict,
            cut=self._cut,
            lineage=lineage,
        )
