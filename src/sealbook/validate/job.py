"""The Spark job of one contract: any number of runs, read and held against the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from threading import Event
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import RDD, InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812

from sealbook.errors import Transient
from sealbook.model.contract import Contract
from sealbook.raw import RawReader
from sealbook.rows.blocks import BLOCK_BYTES
from sealbook.rows.units import Unit
from sealbook.spark.null_on_error import NULL_ON_ERROR, null_on_error
from sealbook.spark.raw_rows import Reader, raw_rows
from sealbook.spark.session import is_gone, task_tries
from sealbook.spark.tasks import why_given_up
from sealbook.spark.types import spark_type
from sealbook.validate.findings import Report, repeated_place
from sealbook.validate.inspection import FINDING, LINE, ORDINAL, Inspection
from sealbook.validate.summary import Reports, summarise

_OWN_TYPES = {ORDINAL: T.IntegerType(), LINE: T.LongType(), FINDING: T.BinaryType()}

# A rule that cannot be computed in one row must not end the job of thousands of partitions: there it is null,
# and does not hold. The plan does not change under way, which keeps it one job. Times are in UTC.
_SETTINGS = {
    **NULL_ON_ERROR,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Job:
    """What one job reads: bins of whole payloads, and bins of slices of those too large for one task."""

    contract: Contract
    rule_columns: tuple[str, ...]
    whole: Sequence[Sequence[Unit]]
    sliced: Sequence[Sequence[Unit]] = ()
    block_bytes: int = BLOCK_BYTES


def run_job(spark: SparkSession, store: RawReader, job: Job, pause: float = 0.05) -> Iterator[list[Report]]:
    """Run a job and yield reports as tasks end; Transient if Spark gives it up. Closing cancels it.

    While no task ends, an empty list is yielded each `pause` seconds: time to do something else.
    """
    try:
        rows = _planned(spark, store, job)
    except (PySparkException, Py4JError) as error:
        raise _given_up(error) from error
    yield from _running(spark, rows, pause)


def _planned(spark: SparkSession, store: RawReader, job: Job) -> RDD[Row]:
    """Return the rows that violate a rule, and the findings, planned but not yet read."""
    tasks = {"spark.sql.shuffle.partitions": str(max(len(job.sliced), 1))}
    with _configured(spark, _SETTINGS | tasks):
        parts = [
            _violations(spark, store, job, bins, sliced=sliced)
            for bins, sliced in ((job.whole, False), (job.sliced, True))
            if bins
        ]
        return reduce(DataFrame.unionAll, parts).rdd


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Plan with these settings, in whatever session this is; what is planned keeps them."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


def _violations(
    spark: SparkSession,
    store: RawReader,
    job: Job,
    bins: Sequence[Sequence[Unit]],
    *,
    sliced: bool,
) -> DataFrame:
    primary_key = job.contract.primary_key if sliced else ()
    inspection = Inspection(job.contract, tuple(dict.fromkeys((*job.rule_columns, *primary_key))), sliced)
    reader = Reader(store, job.contract, inspection, task_tries(spark), job.block_bytes)
    rows = raw_rows(spark, reader, bins, _schema(inspection))

    expressions = [rule.expression for rule in job.contract.rules]
    rules = [rule.alias(f"_rule_{place}") for place, rule in enumerate(null_on_error(rows, expressions))]
    # All around the rules is text: each part of an expression that is built in Python is a call to Java.
    violated = [f"not coalesce(_rule_{place}, false)" for place in range(len(rules))]
    violated.insert(repeated_place(job.contract), _is_repeated(primary_key) if primary_key else "false")
    flags = [f"_violated_{place}" for place in range(len(violated))]
    flagged = (f"{condition} as {flag}" for condition, flag in zip(violated, flags, strict=True))
    is_wanted = " or ".join((f"{FINDING} is not null", *flags))
    key = ", ".join(f"cast(`{name}` as string)" for name in primary_key) or "cast(null as string)"
    return (
        rows.select(ORDINAL, LINE, FINDING, *primary_key, *rules)
        .selectExpr(ORDINAL, LINE, FINDING, f"array({key}) as _key", *flagged)
        .where(is_wanted)
    )


def _is_repeated(primary_key: Sequence[str]) -> str:
    """Ask whether an earlier line of the run has the same primary key, whichever task has read it."""
    same = ", ".join((ORDINAL, f"{FINDING} is null", *(f"`{name}`" for name in primary_key)))
    return f"row_number() over (partition by {same} order by {LINE}) > 1"


def _schema(inspection: Inspection) -> T.StructType:
    types = _OWN_TYPES | {column.name: spark_type(column.type) for column in inspection.contract.columns}
    return T.StructType([T.StructField(name, types[name]) for name in inspection.schema.names])


def _running(spark: SparkSession, rows: RDD[Row], pause: float) -> Iterator[list[Report]]:
    """Run the job in a thread of its own, and yield what has been reported since the last time."""
    context = spark.sparkContext
    reports = context.accumulator([], Reports())
    group = f"sealbook-validate-{uuid4().hex}"
    failures: list[Exception] = []
    ended = Event()

    def run() -> None:
        context.setJobGroup(group, "sealbook validate", interruptOnCancel=True)
        try:
            rows.foreachPartition(lambda some: reports.add(summarise(some)))
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody hears of it in this thread
            failures.append(error)
        finally:
            ended.set()

    thread = InheritableThread(target=run, name=group, session=spark)
    thread.start()
    try:
        while not ended.wait(pause) or reports.value:
            arrived = reports.value[:]
            del reports.value[: len(arrived)]  # Spark never forgets an accumulator
            yield arrived
    finally:
        if not ended.is_set() and not is_gone():
            context.cancelJobGroup(group)
        thread.join()
    if failures:
        raise _given_up(failures[0]) from failures[0]


def _given_up(error: Exception) -> Transient:
    return Transient(why_given_up(error))
