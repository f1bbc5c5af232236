"""The ledger's side of the control plane: claims, rounds, backfills, each beside the bare minimum of it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from bench.harness import Result, duration, seconds, seconds_of, speed
from bench.scale import sized
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.status.tables import MICROSECONDS_A_DAY, day_number
from sealbook.ledger.work.adding import NewWork, add
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.plans import PlanKind, PlanRequest
from sealbook.model.universe import Account, Asset, AssetName, Span, Universe
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import postgresql_server

NOW = datetime(2026, 7, 20, 12, tzinfo=UTC)
FIRST = date(2026, 1, 1)
DAYS, MISSING, LATE = 200, 5, 5
CUSTOMERS, QUERIES = sized(small=250, full=1_000), 5
ASSETS = [AssetName("ads", f"query_{number}") for number in range(QUERIES)]
READY, BATCH, BATCHES = sized(small=50_000, full=200_000), 500, 40
BACKFILL = sized(small=20_000, full=100_000)
DAGSTER_RUNS = 300
WHO: dict[str, Any] = {"actor": "ann", "reason": "to measure it"}


def run() -> list[Result]:
    """Measure on both databases."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        dagster = _dagster_seconds(here)
        with _ledgers(here) as ledgers:
            for name, make in ledgers.items():
                results += _claims(name, make)
                results += _rounds(name, make)
                results += _backfill(name, make, dagster)
    return results


@contextmanager
def _ledgers(here: Path) -> Iterator[dict[str, Callable[[], Ledger]]]:
    with postgresql_server(here / "postgresql") as server:
        numbers = iter(range(99))
        yield {
            "SQLite": lambda: open_ledger(f"sqlite:///{here}/{next(numbers)}.db", clock=lambda: NOW),
            "PostgreSQL": lambda: open_ledger(server.create_ledger(), clock=lambda: NOW),
        }


def _claims(name: str, make: Callable[[], Ledger]) -> list[Result]:
    """Claim batches in turn, fairly and first in, first out; one customer has half of all work."""
    with make() as ledger, make() as bare:
        for each in (ledger, bare):
            _database(each).write(_fill)
            _analyze(each)
        _database(bare).write(
            lambda connection: connection.execute(
                text("CREATE INDEX work_fifo ON work (ready_at) WHERE holder IS NULL")
            )
        )
        served: Counter[str] = Counter()
        terms = Terms(["ads"])

        def fair() -> None:
            claims = ledger.scheduler.claim("bench", terms, limit=BATCH)
            served.update(claim.key.customer_id for claim in claims)

        def first_in_first_out() -> None:
            found = _database(bare).write(_claim_bare)
            assert len(found) == BATCH

        ours = peer = 0.0
        for _ in range(BATCHES):
            ours += seconds_of(fair)
            peer += seconds_of(first_in_first_out)
        total = sum(served.values())
        share = served["big"] / total
        fair_share = 1 / (CUSTOMERS + 1)
        return [
            speed(
                f"claim {BATCH} at a time, by lane and customer, against first in, first out ({name})",
                ours,
                peer,
                at_least=0.5,
                detail=f"{total / ours:,.0f} against {total / peer:,.0f} a second",
                why="A claim also reads lanes, flows, pauses and budgets, and writes how far each has come.",
            ),
            Result(
                f"share of a customer that has half of all work ({name})",
                share / fair_share,
                "x its weight's",
                "<= 2",
                share <= 2 * fair_share,
                f"{share:.4f} of {total:,} claims",
            ),
        ]


def _fill(connection: Connection) -> None:
    days = READY // 2 // CUSTOMERS
    new = [
        NewWork("ads", f"c{number}", "clicks", FIRST + timedelta(days=day), *_FETCH)
        for day in range(days)
        for number in range(CUSTOMERS)
    ]
    new += [
        NewWork("ads", "big", "clicks", date(1900, 1, 1) + timedelta(days=day), *_FETCH)
        for day in range(READY // 2)
    ]
    add(connection, new, NOW)


_FETCH = (Lane.BACKFILL, WorkKind.FETCH, 1)


def _claim_bare(connection: Connection) -> list[object]:
    postgresql = connection.dialect.name == "postgresql"
    place = "ctid" if postgresql else "rowid"
    chosen = (
        f"SELECT {place} FROM work WHERE holder IS NULL AND ready_at <= :now ORDER BY ready_at LIMIT {BATCH}"
    )
    claimed = (
        f"{place} = ANY(ARRAY({chosen} FOR UPDATE SKIP LOCKED))" if postgresql else f"{place} IN ({chosen})"
    )
    now = NOW if postgresql else int(NOW.timestamp() * 1_000_000)
    statement = text(
        f"UPDATE work SET holder = 'bench', fence = fence + 1, claimed_at = :now, expires_at = :now"
        f" WHERE {claimed} RETURNING source, customer_id, query_name, logical_date, fence"
    )
    return list(connection.execute(statement, {"now": now}).all())


def _rounds(name: str, make: Callable[[], Ledger]) -> list[Result]:
    """Plan a round of many partitions, of which one in twenty is due, beside a bare anti-join."""
    with make() as ledger:
        ledger.projector().catch_up()
        _database(ledger).write(_fill_status)
        _analyze(ledger)
        freshness = Freshness((timedelta(hours=3), timedelta(days=MISSING)))
        accounts = {f"c{number:04}": Account(f"c{number:04}", first_day=FIRST) for number in range(CUSTOMERS)}
        universe = Universe({name: Asset(name, freshness) for name in ASSETS}, {"ads": accounts})
        expectations = Expectations(universe, NOW)
        due = len(ledger.rounds.due(expectations))
        ours, peer = seconds(3, lambda: ledger.rounds.due(expectations), lambda: _anti_join(ledger))
        return [
            duration(
                f"plan a round of {CUSTOMERS * QUERIES * DAYS:,} partitions, {due:,} due ({name})",
                ours,
                peer,
                at_most=3,
                detail=f"{ours:.2f} s against {peer:.2f} s of a bare anti-join",
            )
        ]


def _fill_status(connection: Connection) -> None:
    """Have all days but the latest materialized; some of these before they were due once more."""
    today = day_number(NOW.date())
    first, last = today - DAYS, today - 1 - MISSING
    projection = connection.execute(
        text("SELECT id FROM projection WHERE name = 'partition_status'")
    ).scalar_one()
    customers, queries, days = (
        _series(connection, count) for count in (CUSTOMERS, QUERIES, last - first + 1)
    )
    padded = "lpad(c.i::text, 4, '0')" if connection.dialect.name == "postgresql" else "printf('%04d', c.i)"
    connection.execute(
        text(
            "INSERT INTO status_series (projection_id, source, customer_id, query_name)"
            f" SELECT {projection}, 'ads', 'c' || {padded}, 'query_' || q.i"
            f" FROM {customers} AS c, {queries} AS q"
        )
    )
    connection.execute(
        text(
            "INSERT INTO partition_status (series_id, day, availability, materialized_at, attempt_at,"
            " attempt_outcome, materialized_version, attempt_version, changed_at, changed_version)"
            " SELECT s.id, d.day, 'published', d.at, d.at, 'MATERIALIZED', 1, 1, d.at, 1"
            f" FROM status_series AS s, (SELECT {first} + i AS day,"
            f" ({first} + i + 1) * {MICROSECONDS_A_DAY} + {MICROSECONDS_A_DAY // 2} + (CASE WHEN"
            f" {first} + i <= {last - LATE} THEN {MISSING * MICROSECONDS_A_DAY} ELSE 0 END) AS at"
            f" FROM {days} AS days) AS d"
        )
    )


def _series(connection: Connection, count: int) -> str:
    if connection.dialect.name == "postgresql":
        return f"(SELECT i FROM generate_series(0, {count - 1}) AS g (i))"
    counting = f"SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < {count - 1}"
    return f"(WITH RECURSIVE g (i) AS ({counting}) SELECT i FROM g)"


def _anti_join(ledger: Ledger) -> int:
    """Find the days of all series that have no row, or were materialized too early, and have no work."""
    today = day_number(NOW.date())
    with _database(ledger).read() as connection:
        days = _series(connection, DAYS)
        day = (
            "DATE '1970-01-01' + d.day"
            if connection.dialect.name == "postgresql"
            else "date(d.day * 86400, 'unixepoch')"
        )
        query = text(
            f"SELECT s.source, s.customer_id, s.query_name, d.day FROM status_series AS s"
            f" CROSS JOIN (SELECT {today - DAYS} + i AS day FROM {days} AS days) AS d"
            f" LEFT JOIN partition_status AS p ON p.series_id = s.id AND p.day = d.day"
            f" AND p.materialized_at >= (d.day + {1 + MISSING}) * {MICROSECONDS_A_DAY}"
            f" LEFT JOIN work AS w ON w.source = s.source AND w.customer_id = s.customer_id"
            f" AND w.query_name = s.query_name AND w.logical_date = {day}"
            " WHERE p.series_id IS NULL AND w.source IS NULL"
        )
        return len(connection.execute(query).all())


def _backfill(name: str, make: Callable[[], Ledger], dagster: float) -> list[Result]:
    """Preview a backfill and carry it out, beside a peer that only notes the runs of one."""
    days = BACKFILL // CUSTOMERS
    spans = tuple(
        Span("ads", f"c{number:04}", "clicks", FIRST, FIRST + timedelta(days=days - 1))
        for number in range(CUSTOMERS)
    )
    with make() as ledger:

        def work() -> None:
            plan = ledger.plans.preview(PlanRequest(PlanKind.BACKFILL, spans=spans), **WHO).plan
            assert plan.partitions == BACKFILL
            ledger.plans.carry_out(plan.id)

        ours = seconds_of(work)
    peer = dagster * BACKFILL
    return [
        speed(
            f"plan and enqueue {BACKFILL:,} partitions, against Dagster ({name})",
            ours,
            peer,
            at_least=200,
            detail=f"{ours:.1f} s; Dagster's runs created, not launched: {dagster * 1000:.1f} ms each,"
            f" of {DAGSTER_RUNS}",
        )
    ]


def _dagster_seconds(here: Path) -> float:
    """Return the seconds that Dagster takes to create the run of one partition in its default storage."""
    import dagster

    @dagster.op  # type: ignore[untyped-decorator, unused-ignore]
    def fetch() -> None:
        """Do nothing."""

    days = dagster.DailyPartitionsDefinition(start_date="2020-01-01")

    @dagster.job(partitions_def=days)  # type: ignore[untyped-decorator, unused-ignore]
    def clicks() -> None:
        fetch()

    folder = here / "dagster"
    folder.mkdir()
    keys = days.get_partition_keys()[:DAGSTER_RUNS]
    with dagster.DagsterInstance.local_temp(str(folder)) as instance:

        def enqueue() -> None:
            for key in keys:
                instance.create_run_for_job(
                    clicks, tags={"dagster/partition": key, "dagster/backfill": "winter"}
                )

        return seconds_of(enqueue) / DAGSTER_RUNS


def _database(ledger: Ledger) -> Database:
    return ledger._database  # noqa: SLF001 - what has no port is measured too


def _analyze(ledger: Ledger) -> None:
    with _database(ledger).engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
