"""The stage of validation: from sealed runs to verdicts in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sealbook.ledger.contracts import ContractWriter
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.states.verdicts import VerdictWriter
from sealbook.model import PartitionKey, RunId
from sealbook.model.claims import Fences
from sealbook.model.contract import Query
from sealbook.model.horizons import NO_HORIZONS, Horizons
from sealbook.model.keys import refuse_ahead
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.selection import Selection
from sealbook.raw import RawMetadata, RawReader
from sealbook.validate.plan import (
    ValidatePlan,
    Which,
    plan_accepted,
    plan_named,
    plan_new,
    plan_rejected,
    plan_sealed,
)
from sealbook.validate.results import Judged, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.validate.bins import Binning

_PLANS = {Which.NEW: plan_new, Which.ACCEPTED: plan_accepted, Which.REJECTED: plan_rejected}


class Validator:
    """Judges sealed runs by the contracts of their queries; storage and Spark are opened when needed."""

    def __init__(
        self,
        reader: LedgerReader,
        verdicts: VerdictWriter,
        contracts: ContractWriter,
        raw: Callable[[], RawReader],
        queries: Iterable[Query],
        spark: Callable[[], SparkSession],
        binning: Binning | None = None,
        horizons: Callable[[], Horizons] = lambda: NO_HORIZONS,
    ) -> None:
        self._reader = reader
        self._verdicts = verdicts
        self._contracts = contracts
        self._raw = raw
        self._queries = {(query.source, query.name): query for query in queries}
        self._spark = spark
        self._binning = binning
        self._horizons = horizons

    def plan(
        self,
        selection: Selection,
        which: Which = Which.NEW,
        *,
        dry_run: bool = False,
        irreplaceable: bool = False,
    ) -> ValidatePlan:
        """Plan to judge runs of the partitions that are chosen; a dry run tells the ledger nothing.

        Verdicts that would take the only copy of a day from consumers are withheld, unless `irreplaceable`
        confirms them.
        """
        for run_id in selection.runs or ():
            refuse_ahead(run_id, self._reader.run_horizon())
        plan = _PLANS[which](self._raw(), self._reader, selection, dry_run=dry_run)
        return replace(plan, irreplaceable=irreplaceable)

    def plan_sealed(self, seals: Iterable[RawMetadata]) -> ValidatePlan:
        """Plan to judge what has just been sealed, without listing anything."""
        return plan_sealed(self._reader, seals)

    def plan_named(self, runs: Iterable[tuple[PartitionKey, RunId]]) -> ValidatePlan:
        """Plan to judge these sealed runs, once more where they were judged before."""
        return plan_named(self._raw(), self._reader, runs)

    def run(
        self, plan: ValidatePlan, on_progress: OnProgress = no_progress, under: Fences | None = None
    ) -> Generator[list[Result], None, None]:
        """Judge what was planned; results come when their verdicts are in the ledger, batch by batch.

        Closing the iterator cancels the job; what is not in the ledger by then is judged the next time.
        ConfigError, before any job runs, if a rule of a query concerned is wrong. Of what is judged `under`
        claims, that which is no longer held is left alone (R-CTL-4).
        """
        for batch in self._batches(plan, under):
            judged = [result for result in batch if isinstance(result, Judged)]
            on_progress(
                len(batch),
                rows=sum(result.rows for result in judged),
                size=sum(result.payload_bytes for result in judged),
            )
            yield batch

    def _batches(self, plan: ValidatePlan, under: Fences | None) -> Generator[list[Result], None, None]:
        if plan.gone:
            yield list(plan.gone)
        if not plan.candidates:
            return
        from sealbook.validate.bins import Binning
        from sealbook.validate.judging import Judging

        spark = self._spark()
        binning = self._binning or Binning(spark.sparkContext.defaultParallelism)
        judging = Judging(
            self._reader,
            self._verdicts,
            self._raw(),
            self._queries,
            spark,
            binning,
            plan,
            under,
            NO_HORIZONS if plan.irreplaceable else self._horizons(),
        )
        judging.check_rules()
        if not plan.dry_run:
            self._contracts.put_in_force(judging.queries_concerned)
        yield from judging.batches()
