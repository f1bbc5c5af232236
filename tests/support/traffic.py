"""Processes that judge, load, demote, roll back, cut, clean up and read the same partitions, all at once.

Each group of keys makes one promise easy to check. `WAVE` is judged and swapped as a whole: a read that mixes
two instants shows two runs of it. `DOOMED` keys are demoted for good, and `FLAPPING` ones lose their run to
another: what was rejected before a read began must not be in it. `ROLLED` keys go back and forth.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event, Semaphore
from typing import Any, Protocol

from sqlalchemy import select

from sealbook.book import Book
from sealbook.errors import IllegalMove
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db import engine
from sealbook.ledger.db.tables import KEY as KEY_COLUMNS
from sealbook.ledger.states.tables import attempt
from sealbook.model import Outcome, PartitionKey, RunId, Status
from sealbook.model.artifacts import Action, PlanItem, Staged
from sealbook.model.selection import Selection
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from tests.support.ledger import accept, reject, run_id
from tests.support.pointers import copy_to_stage, load, planned, seen
from tests.support.published import CONTRACTS, FIRST_DAY, QUERY, SOURCE, open_book, write

ROUNDS = 12
_PAUSE_SECONDS = 0.02  # what one actor leaves to the others between two turns, for there may be few cores


def keys(group: str, number: int) -> list[PartitionKey]:
    """Return the keys of a group."""
    return [PartitionKey(SOURCE, f"{group}{each:02}", QUERY, FIRST_DAY) for each in range(number)]


WAVE, DOOMED, FLAPPING, ROLLED = (
    keys("wave", 40),
    keys("doomed", ROUNDS),
    keys("flapping", 8),
    keys("rolled", 8),
)
EVERY = WAVE + DOOMED + FLAPPING + ROLLED

Seen = dict[PartitionKey, RunId]
"""The one run that a read has of each partition."""


class Party(Protocol):
    """One who takes part: all work on the same ledger, each on a connection of its own."""

    @property
    def ledger(self) -> Ledger:
        """The ledger."""

    def load(self) -> object:
        """Do a whole load."""

    def see(self, **asked: Any) -> Seen:
        """Read everything, and check that each partition is there once."""


@dataclass(frozen=True)
class PointerParty:
    """Loads and reads pointers alone; there are no artifacts."""

    url: str

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        return open_ledger(self.url)

    def load(self) -> object:
        """Do a whole load."""
        return load(self.ledger)

    def see(self, **asked: Any) -> Seen:
        """Read the pointers."""
        return seen(self.ledger, QUERY, **asked)


@dataclass(frozen=True)
class FileParty:
    """Loads artifacts into a folder, and reads their rows as Arrow tables."""

    url: str
    warehouse: str

    @cached_property
    def book(self) -> Book:
        """The book."""
        return open_book(self.url, self.warehouse)

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self.book.ledger

    def load(self) -> object:
        """Do a whole load, with artifacts whose rows say what run they are of."""
        pointers = self.ledger.pointers
        pointers.hide()
        plan = [item for item in pointers.plan() if item.action is not Action.HIDE]
        return pointers.swap([self._stage(item) for item in plan])

    def _stage(self, item: PlanItem) -> Staged:
        return write(
            self.warehouse, item.key, int(str(item.run_id)), contract=CONTRACTS["1"], copy=copy_to_stage(item)
        )

    def see(self, **asked: Any) -> Seen:
        """Read the rows."""
        table = self.book.table(QUERY, **asked)
        return checked_rows(zip(*(table[name].to_pylist() for name in ROW), strict=True))


ROW = ("customer_id", "run_id", "clicks")
"""Columns that say of a row whose it is, and of which run it really is."""


def checked_rows(rows: Iterable[Sequence[Any]]) -> Seen:
    """Check that these are whole runs, one of each partition."""
    found: Seen = {}
    for (customer, run, clicks), number in Counter(map(tuple, rows)).items():
        key = PartitionKey(SOURCE, customer, QUERY, FIRST_DAY)
        assert key not in found, f"two runs of {key}"
        assert (clicks, number) == (int(run), 10), f"rows of {key} that are not those of run {run}"
        found[key] = RunId(run)
    return found


@dataclass(frozen=True)
class Signals:
    """`done` stops everybody. The judge sets it when all `others` have said that they saw enough."""

    done: Event
    enough: Semaphore
    others: int


def judge_rounds(party: Party, signals: Signals) -> int:
    """Judge one run after the other, now with and now without waiting for a loader; stop all when through."""
    ledger = party.ledger
    unsatisfied = signals.others
    for number in count(2):
        if signals.done.is_set() or (number > ROUNDS + 1 and not unsatisfied):
            break
        run = 2 * number
        ledger.judge([accept(key, run) for key in WAVE + ROLLED + FLAPPING])
        if number % 2:
            _wait_until_loaded(party, run_id(run), signals.done)
        ledger.judge([reject(key, 1, again="for good") for key in DOOMED[number - 2 : number - 1]])
        ledger.judge([reject(key, run, again="bad after all") for key in FLAPPING])
        ledger.judge([accept(key, run + 1) for key in FLAPPING])
        if unsatisfied:
            unsatisfied -= signals.enough.acquire(timeout=_PAUSE_SECONDS)
    signals.done.set()
    return number


def _wait_until_loaded(party: Party, run: RunId, done: Event) -> None:
    deadline = time.monotonic() + 120
    while seen(party.ledger, QUERY)[WAVE[0]] != run and not done.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def load_on(party: Party, signals: Signals) -> int:
    """Load, again and again, against the other loader."""
    for loads in count():
        if loads == 2:
            signals.enough.release()
        if signals.done.is_set():
            return loads
        party.load()
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")


def roll_back_on(party: Party, signals: Signals) -> int:
    """Give authority back to an earlier run, over and over."""
    chance = random.Random(3)
    rolled = 0
    while not signals.done.is_set():
        time.sleep(_PAUSE_SECONDS)
        key = chance.choice(ROLLED)
        runs = sorted({each.run_id for each in party.ledger.attempts(key)})
        try:
            party.ledger.rollback(key, chance.choice(runs), actor="ann", reason="to and fro")
        except IllegalMove:
            continue
        rolled += 1
        if rolled == 1:
            signals.enough.release()
    return rolled


def read_on(party: Party, signals: Signals) -> int:
    """Read, and check each read against what was certain before it; return how many waves it saw."""
    reader = Reader(party.ledger, party.see)
    is_satisfied = False
    while not signals.done.is_set():
        reader.read()
        if not is_satisfied and len(set(reader.waves)) > 2:
            is_satisfied = True
            signals.enough.release()
    return len(set(reader.waves))


@dataclass(frozen=True)
class Reader:
    """Checks reads of any kind."""

    ledger: Ledger
    see: Callable[[], Seen]
    waves: list[RunId] = field(default_factory=list)

    def read(self) -> None:
        """Read once."""
        unfit = rejected(self.ledger)
        failed = {state.key for state in self.ledger.states(status=Status.FAILED)}
        chosen = self.chosen_by_hand()
        found = self.see()
        assert not unfit & set(found.items()), "a run that was rejected before the read began"
        assert not failed & set(DOOMED) & found.keys(), "a partition that was failed when the read began"
        for key, run in chosen.items() & self.chosen_by_hand().items():
            assert found.get(key, run[0]) == run[0], "a run that was rolled back from"  # R-WH-9
        assert found.keys() >= {*WAVE}
        self.waves.append(whole_wave(found))
        assert self.waves == sorted(self.waves), "a replacement that was taken back"

    def chosen_by_hand(self) -> dict[PartitionKey, tuple[RunId | None, datetime | None]]:
        """Return the runs to which partitions are rolled back, and since when."""
        holds = dict(self.ledger.reader.holds(Selection(keys=ROLLED)))
        return {
            state.key: (state.current_run_id, state.updated_at)
            for state in self.ledger.states(Selection(keys=ROLLED))
            if state.key in holds and str(state.current_run_id) <= holds[state.key]
        }


def cut_on(party: Party, signals: Signals) -> int:
    """Pin a cut, and check that it holds nothing unfit, is of one instant, and stays."""
    pinned: dict[str, Seen] = {}
    while not signals.done.is_set():
        unfit = rejected(party.ledger)
        token = party.ledger.pointers.create_cut().token
        pinned[token] = party.see(cut=token)
        assert not unfit & set(pinned[token].items())
        whole_wave(pinned[token])
        if len(pinned) == 1:
            signals.enough.release()
        time.sleep(_PAUSE_SECONDS)
    for token, expected in pinned.items():
        assert party.see(cut=token) == expected
    return len(pinned)


def clean_on(party: FileParty, signals: Signals) -> int:
    """Clean up what nothing needs: that is nothing of what a read may be at work on."""
    cleanup = Cleanup(party.ledger.pointers, ArtifactStore.open(party.warehouse), timedelta(days=7))
    for cleaned in count():
        if cleaned == 1:
            signals.enough.release()
        if signals.done.is_set():
            return cleaned
        list(cleanup.remove())
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")


def whole_wave(found: Seen) -> RunId:
    """Return the run of the wave, which was swapped as a whole."""
    runs = {found[key] for key in WAVE}
    assert len(runs) == 1, f"a mixed instant: {sorted(runs)}"
    return runs.pop()


def rejected(ledger: Ledger) -> set[tuple[PartitionKey, RunId]]:
    """Return the runs that are unfit: here, none is ever accepted again."""
    query = select(*(attempt.c[name] for name in (*KEY_COLUMNS, "run_id")))
    with ledger._database.read() as connection:
        rows = connection.execute(query.where(attempt.c.outcome == Outcome.REJECTED.value)).all()
    return {(PartitionKey(*row[:4]), row.run_id) for row in rows}


def check_settled(party: Party) -> None:
    """Load once more, and see that what is published is what is accepted."""
    party.load()
    assert planned(party.ledger) == []
    assert list(party.ledger.pointers.differences()) == []
    authorities = {each.key: each.current_run_id for each in party.ledger.states(status=Status.SUCCESS)}
    assert party.see() == authorities
    assert authorities.keys() == {*EVERY} - {*DOOMED}


def _act(work: Any, make: Callable[[str], Party], url: str, signals: Signals, answers: Queue[Any]) -> None:
    """Run one actor; if it fails, say how, and stop the others."""
    engine._PAUSES_SECONDS = ()  # type: ignore[assignment]  # no deadlock is repaired in silence
    try:
        party = make(url)
        with party.ledger:
            answers.put((work.__name__, work(party, signals), None))
    except BaseException:
        answers.put((work.__name__, None, traceback.format_exc()))
        raise
    finally:
        signals.done.set()


def begin(party: Party) -> None:
    """Publish a first run of every partition."""
    party.ledger.judge([accept(key, 1) for key in EVERY])
    party.load()


@contextmanager
def traffic(
    processes: ForkServerContext,
    url: str,
    make: Callable[[str], Party],
    actors: Sequence[Callable[[Any, Signals], int]],
    *,
    guests: int = 0,
) -> Iterator[tuple[Signals, dict[str, int]]]:
    """Have actors at work during the block, and wait for all after it; then each one's answer is there.

    One of them judges, and goes on until the others, and as many guests in the block, have seen enough.
    """
    signals = Signals(processes.Event(), processes.Semaphore(0), len(actors) - 1 + guests)
    answers: Queue[Any] = processes.Queue()
    started = [processes.Process(target=_act, args=(work, make, url, signals, answers)) for work in actors]
    for process in started:
        process.start()
    said: dict[str, int] = {}
    try:
        yield signals, said
    except BaseException:
        signals.done.set()
        raise
    finally:
        found = [answers.get(timeout=240) for _ in started]
        for process in started:
            process.join()
    failures = [failure for _, _, failure in found if failure is not None]
    assert not failures, "\n".join(failures)
    for name, answer, _ in found:
        said[name] = max(answer, said.get(name, 0))
