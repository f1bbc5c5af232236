"""The side of a book that cannot write, and what both sides share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from sealbook.book.checks import check_raw
from sealbook.book.sources import with_accounts
from sealbook.book.statuses import StatusReads
from sealbook.config import Settings, check_accounts, check_selection, find_query
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.book.snapshot import CoverageAsked, FrameAsked, PartitionsAsked, Snapshot, TableAsked
    from sealbook.book.trying import TriedQuery
    from sealbook.ledger import LedgerReader
    from sealbook.ledger.accounts import AccountReader
    from sealbook.model.alerts import Alert
    from sealbook.model.contract import Query
    from sealbook.model.drift import DriftSum
    from sealbook.model.publication import Coverage
    from sealbook.model.published_changes import Changes
    from sealbook.model.run_diff import NotCompared, RunDiff
    from sealbook.raw import RawReader, SealedRun
    from sealbook.read.sandbox import Sandbox
    from sealbook.validate.infer import Proposal
    from sealbook.validate.trial import Bite

_EVERYTHING = Selection()


class Readable(StatusReads):
    """What both sides of a book have: settings, raw partitions, Spark, and what is published."""

    def __init__(self, settings: Settings) -> None:
        self.settings = with_accounts(settings, self._account_reader)

    def _account_reader(self) -> AccountReader | None:
        """Return who knows the accounts that were discovered; None while there is no ledger."""
        return self._reads.accounts

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
        check_accounts(self.settings.sources, selection)

    def _knows(self, what: str, name: str) -> bool:
        return self._reads.knows(**{what: name})

    def snapshot(self, *, cut: str | None = None, strict: bool = False) -> Snapshot:
        """Return all that is published at this instant, or at a cut, to be read as often as is wanted.

        Use it as a context manager, or close it: it holds a connection to the ledger. What was read stays,
        DataFrames included. `strict` leaves out what is behind.
        """
        self.catch_up()
        return self._snapshot(cut, strict=strict)

    def _snapshot(self, cut: str | None, *, strict: bool) -> Snapshot:
        from sealbook.book.snapshot import Snapshot

        return Snapshot(self.settings, self._reads, lambda: self.spark, cut=cut, strict=strict)

    def read(
        self, query_name: str, *, strict: bool = False, cut: str | None = None, **asked: Unpack[FrameAsked]
    ) -> DataFrame:
        """Return what is published of a query as a Spark DataFrame, as of now or of a cut (R-CON-1).

        `strict` leaves out what is behind; `cut` is a token; the rest is that of `Snapshot.read`.
        """
        with self._snapshot(cut, strict=strict) as now:
            return now.read(query_name, **asked)

    def table(
        self, query_name: str, *, strict: bool = False, cut: str | None = None, **asked: Unpack[TableAsked]
    ) -> pa.Table:
        """Return the same as an Arrow table, without Spark."""
        with self._snapshot(cut, strict=strict) as now:
            return now.table(query_name, **asked)

    def sql(
        self, text: str, *, strict: bool = False, cut: str | None = None, lineage: bool = False
    ) -> pa.Table:
        """Answer a question in SQL, in which every configured query is a table, without Spark."""
        with self._snapshot(cut, strict=strict) as now:
            return now.sql(text, lineage=lineage)

    def sql_within(self, text: str, sandbox: Sandbox) -> tuple[pa.Table, bool]:
        """Answer a question of somebody who may read what is published and nothing else.

        Return the first rows, and whether there are more. Forbidden if it reaches for anything else.
        """
        with self._snapshot(None, strict=False) as now:
            return now.sql_within(text, sandbox)

    def coverage(
        self, query_name: str, *, strict: bool = False, cut: str | None = None, **asked: Unpack[CoverageAsked]
    ) -> list[Coverage]:
        """Say of every partition of a query what a read gets of it, and why not more (R-CON-3).

        By default: all that are due, and others that the ledger knows. With `until`, days that are not due
        yet, too.
        """
        with self.snapshot(cut=cut, strict=strict) as now:
            return now.coverage(query_name, **asked)

    def changes(
        self,
        query_name: str,
        after: str | None = None,
        *,
        consumer: str | None = None,
        limit: int | None = None,
        source: str | None = None,
        **asked: Unpack[PartitionsAsked],
    ) -> Changes:
        """Return each change of the run that consumers get of a query's partitions, in order (R-CON-5).

        It is told what came after a token, which changes and snapshots have, or after a cut; else after what
        a `consumer` has advanced to; else all that ever was. `token` of the answer is where the next follow.
        """
        query = find_query(self.settings.sources, query_name, source)
        chosen = Selection(source=query.source, queries=query.name, **asked)
        return self.changes_of(chosen, after, consumer=consumer, limit=limit)

    def changes_of(
        self,
        selection: Selection,
        after: str | None = None,
        *,
        consumer: str | None = None,
        limit: int | None = None,
    ) -> Changes:
        """Do the same for whatever is chosen; for a consumer, that is one query."""
        from sealbook.ledger.pointers.published import BEGINNING

        pointers = self._reads.pointers
        if after is None and consumer is not None:
            kept = pointers.consumer(consumer, *self._followed(selection))
            after = None if kept is None else kept.token
        since = BEGINNING if after is None else pointers.token(after)
        return pointers.changes(selection, since, limit)

    def stream(
        self,
        query_name: str,
        *,
        rows: bool = False,
        after: str | None = None,
        most: int | None = None,
        source: str | None = None,
        spark: SparkSession | None = None,
        **asked: Unpack[PartitionsAsked],
    ) -> DataFrame:
        """Return a streaming DataFrame of what changes of a query, each change once by its checkpoint.

        With `rows` it has what changed partitions have now. It begins after a token or a cut, else with all
        that ever was, and a batch has at most so many partitions. Spark reads the book's configuration by
        its path.
        """
        from sealbook.read.frame import stream_frame
        from sealbook.spark.session import prepared

        query = find_query(self.settings.sources, query_name, source)
        if self.settings.file is None:
            raise ConfigError(
                "the book was not read from a file, so Spark cannot find it",
                remedy="Open it with `sealbook.open`.",
            )
        chosen = Selection(**asked)
        given = {
            "book": self.settings.file,
            "query": query.name,
            "source": query.source,
            "customers": None if chosen.customers is None else ",".join(chosen.customers),
            "since": chosen.since,
            "until": chosen.until,
            "rows": "true" if rows else None,
            "after": after,
            "maxPartitionsPerBatch": most,
        }
        session = self.spark if spark is None else prepared(spark, self.settings.spark)
        options = {name: str(value) for name, value in given.items() if value is not None}
        return stream_frame(session, options)

    def _followed(self, selection: Selection) -> tuple[str, str]:
        """Return the one query that a selection names, of which a consumer keeps a token."""
        names = [
            (query.source, query.name)
            for query in self.queries
            if selection.queries is not None and selection.has_query(query.source, query.name)
        ]
        if len(names) != 1:
            raise InvalidInput(
                f"a consumer keeps a token for one query; {len(names)} are chosen",
                field="query",
                remedy="Name one query, and its source where several have it.",
            )
        return names[0]

    def drift(self, selection: Selection = _EVERYTHING, *, by_customer: bool = False) -> list[DriftSum]:
        """Return how much days changed when runs replaced published ones, by query and by age of the day."""
        self.check(selection)
        return self._reads.pointers.drift_sums(selection, by_customer=by_customer)

    def diff(
        self,
        selection: Selection,
        before: str | None = None,
        after: str | None = None,
        *,
        limit: int = 10,
        spark: SparkSession | None = None,
    ) -> list[RunDiff | NotCompared]:
        """Compare two runs of each partition that is chosen: counts, totals, and a sample of what differs.

        Unless it is named, `after` is the newest sealed run, and `before` the published one, or if that is
        the same, the one published before it. The sample has `limit` rows of each kind. Many are compared on
        Spark. A partition that has no two runs, or cannot be read, is told as NotCompared.
        """
        from sealbook.model import RunId
        from sealbook.read.diff import Comparer, Pair, compare_all, plan_pairs
        from sealbook.warehouse.part_files import PartFiles

        check_raw(self.settings, lambda: self.raw)
        runs = (None if each is None else RunId(each) for each in (before, after))
        planned = list(plan_pairs(self.raw, self._reads.pointers, selection, *runs))
        pairs = [each for each in planned if isinstance(each, Pair)]
        queries = {
            (query.source, query.name): self._reads.contracts.as_recorded(query) for query in self.queries
        }
        comparer = Comparer(self.raw, PartFiles(self.settings.warehouse), queries, limit)
        done = iter(compare_all(comparer, pairs, lambda: self.spark if spark is None else spark))
        return [next(done) if isinstance(each, Pair) else each for each in planned]

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

    def try_query(
        self,
        query: str | None,
        customer_id: str,
        day: date,
        *,
        source: str | None = None,
        text: str | None = None,
        rows: int = 10,
    ) -> TriedQuery:
        """Ask a source for a partition of a query, or of a `text` that is in no catalogue; seal nothing.

        Returns the first rows, and a contract that up to 1,000 of them would hold. Needs neither a ledger nor
        Spark.
        """
        from sealbook.book.trying import try_query

        sources = self.settings.sources
        return try_query(sources, query, customer_id, day, source=source, text=text, rows=rows)

    def _next_version(self, sealed: Iterable[SealedRun]) -> str:
        names = {(run.key.source, run.key.query_name) for run in sealed}
        queries = (query for query in self.queries if (query.source, query.name) in names)
        taken = {version for query in queries for version in query.contracts}
        return next(str(number) for number in count(1) if str(number) not in taken)

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
        lags = {statuses.name: statuses.lag()}
        return find_alerts(self._reads, self.expectations(), lags, selection, self.settings.sources)

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()
