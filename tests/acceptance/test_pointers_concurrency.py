"""R-CON-1, R-WH-3, R-WH-5: readers in a loop while other processes judge, load, demote, roll back and cut.

Each group of keys makes one promise easy to check. `WAVE` is judged and swapped as a whole: a read that mixes
two instants shows two runs of it. `DOOMED` keys are demoted for good, and `FLAPPING` ones lose their run to
another: what was rejected before a read began must not be in it. `ROLLED` keys go back and forth.
"""

from __future__ import annotations

import random
import time
import traceback
from datetime import date
from itertools import count
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

from sqlalchemy import select

from sealbook.errors import IllegalMove
from sealbook.ledger import Ledger, engine, open_ledger
from sealbook.ledger.tables import KEY as KEY_COLUMNS
from sealbook.ledger.tables import attempt
from sealbook.model import Outcome, PartitionKey, RunId, Status
from tests.support.ledger import accept, reject, run_id
from tests.support.pointers import load, planned, seen

ROUNDS = 12


def keys(group: str, number: int) -> list[PartitionKey]:
    return [PartitionKey("demo", f"{group}{each:02}", "clicks", date(2026, 1, 1)) for each in range(number)]


WAVE, DOOMED, FLAPPING, ROLLED = (
    keys("wave", 40),
    keys("doomed", ROUNDS),
    keys("flapping", 8),
    keys("rolled", 8),
)
EVERY = WAVE + DOOMED + FLAPPING + ROLLED


def judge_rounds(ledger: Ledger, done: Event) -> None:
    """Judge one run after the other, now with and now without waiting for a loader; stop all when through."""
    for number in range(2, ROUNDS + 2):
        run = 2 * number
        ledger.judge([accept(key, run) for key in WAVE + ROLLED + FLAPPING])
        if number % 2:
            wait_until_loaded(ledger, run_id(run), done)
        ledger.judge([reject(DOOMED[number - 2], 1, again="for good")])
        ledger.judge([reject(key, run, again="bad after all") for key in FLAPPING])
        ledger.judge([accept(key, run + 1) for key in FLAPPING])
    done.set()


def wait_until_loaded(ledger: Ledger, run: RunId, done: Event) -> None:
    deadline = time.monotonic() + 120
    while seen(ledger, "clicks")[WAVE[0]] != run and not done.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def load_on(ledger: Ledger, done: Event) -> int:
    """Load, again and again, against the other loader."""
    for loads in count():
        if done.is_set():
            return loads
        load(ledger)
    raise AssertionError("unreachable")


def roll_back_on(ledger: Ledger, done: Event) -> int:
    """Give authority back to an earlier run, over and over."""
    chance = random.Random(3)
    rolled = 0
    while not done.is_set():
        key = chance.choice(ROLLED)
        runs = sorted({each.run_id for each in ledger.attempts(key)})
        try:
            ledger.rollback(key, chance.choice(runs), actor="ann", reason="to and fro")
        except IllegalMove:
            continue
        rolled += 1
    return rolled


def read_on(ledger: Ledger, done: Event) -> int:
    """Read, and check each read against what was certain before it began."""
    waves: list[RunId] = []
    while not done.is_set():
        unfit, failed = rejected(ledger), {state.key for state in ledger.states(status=Status.FAILED)}
        found = seen(ledger, "clicks")  # which also checks that each partition is there once
        assert not unfit & set(found.items()), "a run that was rejected before the read began"
        assert not failed & set(DOOMED) & found.keys(), "a partition that was failed when the read began"
        waves.append(whole_wave(found))
        assert found.keys() >= {*WAVE, *ROLLED}
    assert waves == sorted(waves), "a replacement that was taken back"
    return len(set(waves))


def cut_on(ledger: Ledger, done: Event) -> int:
    """Pin a cut, and check that it holds nothing unfit, is of one instant, and stays."""
    pinned: dict[str, dict[PartitionKey, RunId]] = {}
    while not done.is_set() or not pinned:
        unfit = rejected(ledger)
        token = ledger.pointers.create_cut().token
        pinned[token] = seen(ledger, "clicks", cut=token)
        assert not unfit & set(pinned[token].items())
        whole_wave(pinned[token])
        time.sleep(0.02)
    for token, expected in pinned.items():
        assert seen(ledger, "clicks", cut=token) == expected
    return len(pinned)


def whole_wave(found: dict[PartitionKey, RunId]) -> RunId:
    runs = {found[key] for key in WAVE}
    assert len(runs) == 1, f"a mixed instant: {sorted(runs)}"
    return runs.pop()


def rejected(ledger: Ledger) -> set[tuple[PartitionKey, RunId]]:
    """Return the runs that are unfit: here, none is ever accepted again."""
    query = select(*(attempt.c[name] for name in (*KEY_COLUMNS, "run_id")))
    with ledger._database.read() as connection:
        rows = connection.execute(query.where(attempt.c.outcome == Outcome.REJECTED.value)).all()
    return {(PartitionKey(*row[:4]), row.run_id) for row in rows}


def act(work: Any, url: str, done: Event, answers: Queue[Any]) -> None:
    """Run one actor; if it fails, say how, and stop the others."""
    engine._PAUSES_SECONDS = ()  # type: ignore[assignment]  # no deadlock is repaired in silence
    try:
        with open_ledger(url) as ledger:
            answers.put((work.__name__, work(ledger, done), None))
    except BaseException:
        answers.put((work.__name__, None, traceback.format_exc()))
        raise
    finally:
        done.set()


def test_readers_among_writers(ledger_url: str, processes: ForkServerContext) -> None:
    """Never two runs of a partition, never an unfit one, never a mixed instant; and no deadlock."""
    with open_ledger(ledger_url) as ledger:
        ledger.judge([accept(key, 1) for key in EVERY])
        load(ledger)
    done, answers = processes.Event(), processes.Queue()
    actors = [judge_rounds, load_on, load_on, roll_back_on, read_on, read_on, cut_on]
    started = [processes.Process(target=act, args=(work, ledger_url, done, answers)) for work in actors]
    for process in started:
        process.start()
    found = [answers.get(timeout=240) for _ in started]
    for process in started:
        process.join()
    failures = [failure for _, _, failure in found if failure is not None]
    assert not failures, "\n".join(failures)
    results = {name: answer for name, answer, _ in found}
    assert results["read_on"] > 2, "the readers saw no replacement"
    assert results["roll_back_on"] > 0
    assert results["load_on"] > 1
    assert results["cut_on"] > 0

    with open_ledger(ledger_url) as ledger:
        load(ledger)
        assert planned(ledger) == []
        assert list(ledger.pointers.differences()) == []
        authorities = {each.key: each.current_run_id for each in ledger.states(status=Status.SUCCESS)}
        assert seen(ledger, "clicks") == authorities
        assert authorities.keys() == {*EVERY} - {*DOOMED}
