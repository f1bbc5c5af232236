"""The event store against bare drivers and Dagster: the same events, the same durability."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from bench.event_load import DATA, highest_lag, sealed, seconds_of_writers
from bench.event_peers import BareDriver, DagsterInstance, Row, bare_driver, ready_rows
from bench.harness import BUSY, Result, seconds, seconds_of, speed
from bench.scale import sized
from sealbook.clock import utc_now
from sealbook.ledger import migrate, open_ledger
from sealbook.model.events import RunEvent
from tests.support.ledger import postgresql_server
from tests.support.runs import new_run_id

T = TypeVar("T")

ROUNDS = sized(small=3, full=5)
SINGLES = 1_000
BATCH = 1_000
BATCHES = 10
WRITERS = 8
RUN_EVENTS = 100_000
_ROUND_TRIPS = (
    "On PostgreSQL an append is three statements and a commit, the driver's is one round trip to the server:"
    " on a busy machine each has to wait for a core."
)
DUPLICATES = sized(small=200_000, full=1_000_000)


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        here = Path(folder)
        return [
            *_against_driver("SQLite", f"sqlite:///{here}/ours.db", f"sqlite:///{here}/bare.db"),
            *_against_driver("PostgreSQL", server.create_database(), server.create_database()),
            _against_dagster(here),
            *_writers_at_once(server.create_ledger()),
            *_projecting(f"sqlite:///{here}/projected.db"),
            _lag("SQLite", f"sqlite:///{here}/lag.db"),
            _lag("PostgreSQL", server.create_ledger()),
            _appending_again(f"sqlite:///{here}/again.db"),
        ]


def _against_driver(name: str, ours: str, bare: str) -> list[Result]:
    """Append to one ledger, and insert the same rows into the log of another with its driver alone."""
    migrate(ours)
    migrate(bare)
    results = []
    with open_ledger(ours) as ledger, bare_driver(bare) as driver:
        singles = _batches(SINGLES, 1)
        one = seconds(
            ROUNDS,
            _each(singles, lambda batch: ledger.run_store.append_event(batch[0])),
            _each(_as_rows(driver, singles), lambda rows: driver.insert_one(rows[0])),
        )
        what = f"append one event, {name}, against its driver"
        results.append(speed(what, *one, at_least=0.35, detail=_rate(SINGLES, one[0]), why=_ROUND_TRIPS))
        batches = _batches(BATCHES, BATCH)
        many = seconds(
            ROUNDS,
            _each(batches, ledger.run_store.append_events),
            _each(_as_rows(driver, batches), driver.insert_many),
        )
        what = f"append {BATCH:,} events, {name}, against its driver's executemany"
        results.append(speed(what, *many, at_least=0.25, detail=_rate(BATCHES * BATCH, many[0])))
    return results


def _against_dagster(folder: Path) -> Result:
    instance = DagsterInstance(folder / "dagster")
    with open_ledger(f"sqlite:///{folder}/material.db") as ledger:
        ours, theirs = seconds(
            1,
            lambda: ledger.run_store.append_events(sealed(new_run_id(), 0, BATCH)),
            lambda: instance.report(BATCH, DATA),
        )
    return speed(f"append {BATCH:,} events, SQLite, against Dagster's reporting", ours, theirs, at_least=20)


def _writers_at_once(url: str) -> list[Result]:
    """Compare writers at once with one alone, by events a second."""
    results = []
    for what, runs, at_least in (
        ("distinct runs", [new_run_id() for _ in range(WRITERS)], 2.5),
        ("the same run", [new_run_id()] * WRITERS, 0.5),
    ):
        alone, together = (
            min(
                seconds_of_writers(url, writers, (turn + 1) * SINGLES * WRITERS, SINGLES)
                for turn in range(ROUNDS)
            )
            for writers in ([new_run_id()], runs)
        )
        name = f"{WRITERS} writers on PostgreSQL, {what}, against one"
        detail = f"{SINGLES / alone:,.0f} and {SINGLES * WRITERS / together:,.0f} events/s"
        results.append(speed(name, together, alone * WRITERS, at_least=at_least, detail=detail))
    return results


def _projecting(url: str) -> list[Result]:
    """Project many runs, then one long run of many steps, from a log that is there already."""
    with open_ledger(url) as ledger:
        for _ in range(10):
            ledger.run_store.append_events(sealed(new_run_id(), 0, RUN_EVENTS // 10))
        projector = ledger.run_store.projector()
        rate = RUN_EVENTS / seconds_of(projector.catch_up)
        steps = RUN_EVENTS // 2
        run_id = new_run_id()
        ledger.run_store.append_event(RunEvent.new(run_id, "RunStarted"))
        for kind in ("StepStarted", "StepCompleted"):
            ledger.run_store.append_events(RunEvent.new(run_id, kind, f"step {n}") for n in range(steps))
        began = time.process_time()
        caught_up = seconds_of(projector.catch_up)
        caught_up_cpu, began = time.process_time() - began, time.process_time()
        rebuilt = seconds_of(projector.rebuild)
        rebuilt_cpu = time.process_time() - began
    long = f"a run of {RUN_EVENTS:,} events and {steps:,} steps"
    return [
        Result("project a log, SQLite", rate, "events/s", ">= 20,000", rate >= 20_000),
        _within_30(f"catch up with {long}", caught_up, f"{caught_up_cpu:.1f} s of processor time"),
        _within_30(
            f"rebuild with {long}",
            rebuilt,
            f"{2 * RUN_EVENTS:,} events in all; {rebuilt_cpu:.1f} s of processor time",
        ),
    ]


def _within_30(name: str, taken: float, detail: str) -> Result:
    return Result(name, taken, "s", "< 30", taken < 30, detail, BUSY)


def _lag(name: str, url: str) -> Result:
    migrate(url)
    lag = highest_lag(url, events_a_second=2_000, for_seconds=6)
    return Result(f"highest lag while 2,000 events a second arrive, {name}", lag, "s", "< 1", lag < 1)


def _appending_again(url: str) -> Result:
    with open_ledger(url) as ledger:
        run_id = new_run_id()
        events = [RunEvent.new(run_id, "RunStarted"), *sealed(run_id, 0, BATCH - 1)]
        ledger.run_store.append_events(events)
        before = ledger.run_store.project_snapshot(run_id).hash
        passed = seconds_of(
            lambda: [ledger.run_store.append_events(events) for _ in range(DUPLICATES // BATCH)]
        )
        after = ledger.run_store.project_snapshot(run_id).hash
    name = f"snapshot hash after {DUPLICATES:,} duplicates"
    return Result(name, float(before != after), "changes", "0", before == after, _rate(DUPLICATES, passed))


def _batches(count: int, size: int) -> list[list[RunEvent]]:
    """Make what one contender appends in all rounds; each round has a run of its own."""
    now = utc_now()
    return [
        [event.stored(1, now) for event in sealed(run_id, batch * size, size)]
        for run_id in (new_run_id() for _ in range(ROUNDS))
        for batch in range(count)
    ]


def _as_rows(driver: BareDriver, batches: list[list[RunEvent]]) -> list[list[Row]]:
    """Make the same events ready for a driver; it has one run for all of them, as it numbers none."""
    first = driver.next_seq
    sizes = [len(batch) for batch in batches]
    driver.next_seq += sum(sizes)
    return [ready_rows(driver, batch, first + sum(sizes[:index])) for index, batch in enumerate(batches)]


def _each(batches: list[T], work: Callable[[T], object]) -> Callable[[], None]:
    """Return what does the next round's share of batches."""
    share = len(batches) // ROUNDS
    waiting: Iterator[T] = iter(batches)

    def turn() -> None:
        for _ in range(share):
            work(next(waiting))

    return turn


def _rate(count: int, passed: float) -> str:
    return f"{count / passed:,.0f} events/s"
