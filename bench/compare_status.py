"""Partition status against bare statements over the same rows, and against Dagster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from bench.bare import Bare
from bench.event_peers import DagsterInstance
from bench.harness import Result, duration, noted, seconds, seconds_of, speed
from bench.scale import sized
from bench.status_load import (
    ALL_CUSTOMERS,
    CUSTOMERS,
    DAYS,
    FIRST,
    QUERIES,
    SAME_DAY,
    WEEK,
    customers,
    expectations,
    fill,
)
from sealbook.clock import utc_now
from sealbook.ledger import Ledger, migrate, open_ledger
from sealbook.ledger.status.tables import day_number
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionPublished, Stage
from sealbook.model.selection import Selection
from sealbook.model.status_line import StatusFilter
from sealbook.model.universe import Account, Asset, AssetName, Universe
from sealbook.status.archive import RunArchive
from sealbook.status.explaining import explain
from tests.support.ledger import postgresql_server

ROUNDS = sized(small=3, full=5)
OUTCOMES = 2_000
PARTITIONS = CUSTOMERS * len(QUERIES) * DAYS

_GROUPS = "SELECT availability, attempt_outcome, count(*) FROM partition_status GROUP BY 1, 2"
_ABOVE = (
    "SELECT own.availability, own.attempt_outcome, above.materialized_at > own.materialized_at, count(*)"
    " FROM partition_status AS own LEFT JOIN partition_status AS above"
    " ON above.series_id = own.series_id - 3 AND above.day = own.day AND own.series_id % 4 = 0"
    " GROUP BY 1, 2, 3"
)
"""The least that a database must do to hold a query of four against another of the same day."""
_SELECT = (
    "SELECT series_id, day, availability, materialized_at, attempt_at, attempt_outcome, validator_id"
    " FROM partition_status WHERE series_id IN ({ids}) AND day BETWEEN {first} AND {last}"
)

_ARRAYS = "Some fifteen elements of arrays are read for each row, and each series is prepared in Python."
_JOIN = (
    "A bare join of the table with itself takes several times a GROUP BY: see the figure against that join."
)
_READ_THRICE = (
    "What it is made of is read three times: to see that it is stale, since when, and because of which; and a"
    " time is longer where others work on the machine too."
)

_MADE_OF = (
    ("freshness and code",),
    ("one query of four made of another", SAME_DAY),
    ("one query of four made of a week of another", WEEK),
    ("one query of four made of all customers of another", ALL_CUSTOMERS),
)


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        return [
            *_on("SQLite", f"sqlite:///{folder}/status.db", folder),
            *_on("PostgreSQL", server.create_database(), folder),
            *_against_dagster(Path(folder)),
        ]


def _on(name: str, url: str, folder: str) -> Iterator[Result]:
    migrate(url)
    with open_ledger(url) as ledger, Bare(url) as bare:
        empty = bare.size()
        fill(ledger)
        bare.tidy()
        detail = f"{PARTITIONS:,} partitions"
        size = (bare.size() - empty) / PARTITIONS
        yield noted(f"what a partition's status takes, {name}", size, "bytes", detail)
        for what, *upstreams in _MADE_OF:
            count = partial(ledger.reader.statuses.counts, expectations(*upstreams))
            ours, peer = seconds(ROUNDS, count, lambda: bare.ask(_GROUPS))
            text = f"counts, {what}, {name}, against a bare GROUP BY"
            detail = f"{ours:.2f} s of {peer:.2f} s"
            yield duration(text, ours, peer, at_most=3, detail=detail, why=_JOIN if upstreams else _ARRAYS)
        count = partial(ledger.reader.statuses.counts, expectations(SAME_DAY))
        ours, peer = seconds(ROUNDS, count, lambda: bare.ask(_ABOVE))
        text = f"counts, one query of four made of another, {name}, against that bare join and GROUP BY"
        yield noted(text, ours / peer, "x time", f"{ours:.2f} s of {peer:.2f} s")
        yield _grid(name, ledger, bare)
        yield from _explanations(name, ledger, RunArchive(f"{folder}/archive"))


def _grid(name: str, ledger: Ledger, bare: Bare) -> Result:
    held = expectations(SAME_DAY)
    first = FIRST + timedelta(days=DAYS - 90)
    last = first + timedelta(days=89)
    chosen = Selection(customers=customers()[:100], queries=QUERIES[3])
    ids = ", ".join(str(place * len(QUERIES) + 4) for place in range(100))
    text = _SELECT.format(ids=ids, first=day_number(first), last=day_number(last))
    ours, peer = seconds(
        ROUNDS,
        lambda: ledger.reader.statuses.cells(held, chosen, first, last),
        lambda: bare.ask(text),
    )
    what = f"a grid of 100 customers and 90 days, {name}, against a bare select"
    return duration(what, ours, peer, at_most=3, detail=f"{ours * 1000:.0f} ms of {peer * 1000:.0f} ms")


def _explanations(name: str, ledger: Ledger, archive: RunArchive) -> Iterator[Result]:
    """Explain a partition that is stale, as a command does once it has started."""
    for what, upstreams in (
        ("made of another", [SAME_DAY]),
        (f"made of {CUSTOMERS:,} others", [SAME_DAY, WEEK, ALL_CUSTOMERS]),
    ):
        held = expectations(*upstreams)
        chosen = Selection(queries=QUERIES[3], until=FIRST + timedelta(days=50))
        [line] = ledger.reader.statuses.lines(held, chosen, where=StatusFilter(stale=True), limit=1)
        command = partial(_explain, ledger, archive, held, line.key)
        [taken] = seconds(ROUNDS, command)
        yield Result(
            f"explain a partition {what}, {name}", taken * 1000, "ms", "< 50", taken < 0.05, why=_READ_THRICE
        )


def _explain(ledger: Ledger, archive: RunArchive, held: Expectations, key: PartitionKey) -> None:
    ledger.projector().catch_up()
    ledger.reader.statuses.first_known()
    explain(ledger.reader, archive, held, key)


def _against_dagster(folder: Path) -> Iterator[Result]:
    """Record outcomes and read them back: both keep them on SQLite."""
    # Ours first: what importing Dagster leaves in memory is not ours to look through.
    ours = {
        what: min(_record_and_read(f"sqlite:///{folder}/{what}-{n}.db", record) for n in range(ROUNDS))
        for what, record in (("publications", _publish), ("failures", _fail))
    }
    instance = DagsterInstance(folder / "dagster")
    [theirs] = seconds(2, lambda: instance.report_and_read(OUTCOMES))
    for what, taken in ours.items():
        text = f"record {OUTCOMES:,} {what} and read them back, SQLite, against Dagster's materializations"
        yield speed(text, taken, theirs, at_least=50, detail=f"{taken:.2f} s and {theirs:.1f} s")


def _record_and_read(url: str, record: Callable[[Ledger, list[PartitionKey]], object]) -> float:
    asset = AssetName("demo", QUERIES[0])
    keys = [PartitionKey(asset.source, "a", asset.query_name, FIRST - timedelta(n)) for n in range(OUTCOMES)]
    universe = Universe({asset: Asset(asset)}, {"demo": {"a": Account("a", first_day=keys[-1].logical_date)}})
    with open_ledger(url) as ledger:

        def record_and_read() -> None:
            record(ledger, keys)
            ledger.projector().catch_up()
            lines = ledger.reader.statuses.lines(Expectations(universe, utc_now()), limit=OUTCOMES)
            if [line.key for line in lines if line.last_attempt_outcome] != sorted(keys):
                raise AssertionError("the ledger has lost a partition")

        return seconds_of(record_and_read)


def _publish(ledger: Ledger, keys: list[PartitionKey]) -> None:
    """Tell the log of publications, as Dagster's log is told."""
    run_id = ledger.open_run()
    facts = (
        PartitionPublished(
            key=key, run_id=run_id, attempt="1", schema_version="1", record_count=1, bytes=1, digest="0" * 64
        )
        for key in keys
    )
    ledger.run_store.append_events([fact.to_event() for fact in facts])


def _fail(ledger: Ledger, keys: list[PartitionKey]) -> None:
    """Tell of failures as extraction does: what is to be done about each is written with it."""
    run_id = ledger.open_run()
    ledger.runs.tell(
        PartitionFailed(
            key=key,
            run_id=run_id,
            attempt="1",
            failed_stage=Stage.EXTRACT,
            error_class=ErrorClass.PERMANENT,
            error="refused",
        )
        for key in keys
    )
