"""R-STATE-5, R-STATE-6: many processes judge the same keys at once; no attempt is lost or counted twice."""

from __future__ import annotations

import multiprocessing
import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from itertools import pairwise
from multiprocessing.context import BaseContext, ForkServerContext
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest
from sqlalchemy import select

from sealbook.ledger import open_ledger
from sealbook.ledger.db import engine
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY as KEY_COLUMNS
from sealbook.ledger.states.tables import attempt
from sealbook.model import PartitionKey, Status, Verdict
from tests.support.ledger import BACKENDS, accept, reject, run_id

T = TypeVar("T")

PROCESSES = 8
KEYS = [
    PartitionKey("demo", f"c{n % 40}", "clicks", date(2026, 1, 1) + timedelta(days=n)) for n in range(2_000)
]
OLDEST = 1  # a run that half of the keys had before


_together: list[Barrier] = []  # in each process, what they meet at


def at_once(context: BaseContext, work: Callable[..., T], *arguments: object) -> list[T]:
    """Run the work in processes that all begin together; the first argument is the number of each."""
    meeting = (context.Barrier(PROCESSES),)
    with ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=meet, initargs=meeting) as pool:
        jobs = [pool.submit(work, number, *arguments) for number in range(PROCESSES)]
        return [job.result() for job in jobs]


def meet(barrier: Barrier) -> None:
    _together.append(barrier)
    barrier.wait(timeout=200)


def verdict(index: int, run: int) -> Verdict:
    """Return the one verdict that there is of a run of a key: two in three are good."""
    return accept(KEYS[index], run) if (index * 7 + run) % 3 else reject(KEYS[index], run)


def judged_by(process: int) -> list[int]:
    """Return the keys whose run of this process is judged."""
    return random.Random(process).sample(range(len(KEYS)), 1_200)


def deliveries(process: int) -> list[Verdict]:
    """Return what a process delivers: its own run of many keys, and part of its neighbour's once more."""
    chance = random.Random(-process - 1)
    neighbour = (process + 1) % PROCESSES
    verdicts = [verdict(index, 10 + process) for index in judged_by(process)]
    verdicts += [verdict(index, 10 + neighbour) for index in chance.sample(judged_by(neighbour), 400)]
    chance.shuffle(verdicts)
    return verdicts


def judge_all(process: int, url: str) -> int:
    """Judge in shuffled batches that overlap those of the others in every order.

    The first is a large one, of keys that are new; so is the last, of keys that all have a row by then.
    """
    engine._PAUSES_SECONDS = ()  # type: ignore[assignment]  # no deadlock is repaired in silence
    verdicts = deliveries(process)
    if url.startswith("postgresql"):
        # As on a large table, where rows are looked up one by one, not by one scan in one order.
        url += "&options=" + "%20".join(
            f"-cenable_{plan}%3Doff" for plan in ("hashjoin", "mergejoin", "seqscan")
        )
    with open_ledger(url) as ledger:
        judged = sum(
            len(ledger.judge(verdicts[start:end])) for start, end in pairwise((0, 500, 600, 700, 800))
        )
        _together[0].wait(timeout=200)
        return judged + len(ledger.judge(verdicts[800:]))


def test_eight_processes_judge_overlapping_keys(ledger_url: str, processes: ForkServerContext) -> None:
    """R-STATE-6: afterwards every distinct attempt counted once, and the newest accepted run won."""
    with open_ledger(ledger_url) as ledger:
        ledger.judge([verdict(index, OLDEST) for index in range(0, len(KEYS), 2)])
    context: BaseContext = processes
    if ledger_url.startswith("postgresql"):
        # Started afresh, so that sets have another order in each; on SQLite there is one writer at a time.
        context = multiprocessing.get_context("spawn")
    assert at_once(context, judge_all, ledger_url) == [1_600] * PROCESSES

    runs: dict[PartitionKey, set[int]] = defaultdict(set)
    for index in range(0, len(KEYS), 2):
        runs[KEYS[index]].add(OLDEST)
    for process in range(PROCESSES):
        for index in judged_by(process):
            runs[KEYS[index]].add(10 + process)

    recorded: dict[PartitionKey, list[tuple[int, str]]] = defaultdict(list)
    with open_ledger(ledger_url) as ledger:
        states = {state.key: state for state in ledger.states()}
        with ledger._database.read() as connection:
            query = select(*(attempt.c[name] for name in (*KEY_COLUMNS, "attempt", "run_id")))
            for row in connection.execute(query):
                recorded[PartitionKey(*row[:4])].append((row.attempt, row.run_id))
    assert states.keys() == runs.keys()
    for index, key in enumerate(KEYS):
        if key not in runs:
            continue
        state, attempts = states[key], sorted(recorded[key])
        assert state.attempt_count == len(runs[key])
        assert [number for number, _ in attempts] == list(range(1, len(runs[key]) + 1))
        assert {run for _, run in attempts} == {run_id(run) for run in runs[key]}
        accepted = [run for run in runs[key] if verdict(index, run).accepted]
        assert state.current_run_id == (run_id(max(accepted)) if accepted else None)
        assert state.status is (Status.SUCCESS if accepted else Status.FAILED)


def open_and_judge(process: int, url: str) -> int:
    """Open a book that may not exist yet, and use it."""
    with open_ledger(url, migrate=True) as ledger:
        return ledger.judge([accept(KEYS[0], 1 + process)])[0].attempt_count


@pytest.mark.parametrize("backend", BACKENDS)
def test_eight_processes_open_a_new_book(
    backend: str, processes: ForkServerContext, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One migrates, the others wait for it; none fails, and none migrates twice."""
    for round_ in range(2):
        if backend == "postgresql":
            url = request.getfixturevalue("postgresql").create_database()
        else:
            url = f"sqlite:///{tmp_path}/book{round_}.db"
        counts = at_once(processes, open_and_judge, url)
        assert sorted(counts) == list(range(1, PROCESSES + 1))
        with open_ledger(url) as ledger:
            assert ledger.state(KEYS[0]).current_run_id == run_id(PROCESSES)


def open_each(_process: int, folder: Path, books: int) -> None:
    """Connect to one new file after the other, each at the same moment as the other processes."""
    for number in range(books):
        _together[0].wait(timeout=200)
        with closing(Database(f"sqlite:///{folder}/{number}.db")) as database, database.read() as connection:
            connection.exec_driver_sql("SELECT 1")


def test_the_first_connections_to_a_sqlite_file(processes: ForkServerContext, tmp_path: Path) -> None:
    """SQLite does not wait for the lock that the switch to its write-ahead log takes; the ledger does."""
    at_once(processes, open_each, tmp_path, 80)
