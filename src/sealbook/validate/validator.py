"""The validator: from sealed runs to verdicts in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

from sealbook.ledger import Ledger
from sealbook.model.contract import Query
from sealbook.raw import RawStore
from sealbook.validate.plan import Plan, Selection, plan_accepted, plan_new
from sealbook.validate.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.validate.layout import Layout


class Validator:
    """Judges sealed runs by the contracts of their queries, on Spark, which is started when it is needed."""

    def __init__(
        self,
        ledger: Ledger,
        raw: RawStore,
        queries: Iterable[Query],
        spark: Callable[[], SparkSession],
        layout: Layout | None = None,
    ) -> None:
        self._ledger = ledger
        self._raw = raw
        self._queries = {(query.source, query.name): query for query in queries}
        self._spark = spark
        self._layout = layout

    def plan(self, selection: Selection) -> Plan:
        """Plan to judge what is new."""
        return plan_new(self._raw, self._ledger, selection)

    def plan_again(self, selection: Selection, *, is_rehearsal: bool = False) -> Plan:
        """Plan to judge again what is accepted; as a rehearsal, the ledger will not hear of it."""
        return plan_accepted(self._raw, self._ledger, selection, is_rehearsal=is_rehearsal)

    def judge(self, plan: Plan) -> Generator[Result, None, None]:
        """Judge what was planned; results come when their verdicts are in the ledger, batch by batch.

        Closing the iterator cancels the job; what is not in the ledger by then is judged the next time.
        ConfigError, before any job runs, if a rule of a query concerned is wrong.
        """
        yield from plan.gone
        if not plan.candidates:
            return
        from sealbook.validate.judging import Judging
        from sealbook.validate.layout import Layout

        spark = self._spark()
        layout = self._layout or Layout(spark.sparkContext.defaultParallelism)
        yield from Judging(self._ledger, self._raw, self._queries, spark, layout, plan).results()
