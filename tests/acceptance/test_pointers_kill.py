"""R-WH-4: a loader killed in the middle leaves the last published runs, and the next one converges."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import count
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest
from sqlalchemy import event

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey, RunId
from tests.support.killing import started, wait_for_the_server
from tests.support.ledger import accept, reject
from tests.support.pointers import load, planned, seen, stage

KEYS = [PartitionKey("demo", f"c{number:03}", "clicks", date(2026, 1, 1)) for number in range(120)]
DEMOTED = KEYS[::7]
SAFE = [key for key in KEYS if key not in DEMOTED]


def content(ledger: Ledger) -> Any:
    """Return all that the warehouse's tables say, but for versions and times."""
    pointers = [(each.key, each.status, each.run_id) for each in ledger.pointers.pointers()]
    records = [
        each._replace(loaded_at=datetime(2026, 1, 1, tzinfo=UTC)) for each in ledger.pointers.load_records()
    ]
    return seen(ledger, "clicks"), pointers, records, planned(ledger)


def prepare(ledger: Ledger) -> None:
    """Publish a run of every key; then accept another of all, and demote some."""
    ledger.judge([accept(key, 1) for key in KEYS])
    load(ledger)
    ledger.judge([accept(key, 2) for key in KEYS])
    ledger.judge([reject(key, 2, again="r") for key in DEMOTED])


def act(what: str, ledger: Ledger) -> Callable[[], object]:
    """Return a transaction of the loader, with all that comes before it done."""
    if what == "hide":
        return ledger.pointers.hide
    ready = [stage(item) for item in ledger.pointers.plan() if item.action == "replace"]
    return lambda: ledger.pointers.swap(ready)


def stop_at(point: int, what: str, url: str, pipe: Pipe) -> None:
    """Do it, and stop for ever after so many statements, the last of them before the commit."""
    with open_ledger(url) as ledger:
        work, executed = act(what, ledger), []

        def after(*event_of: object) -> None:
            executed.append(event_of)
            if len(executed) == point:
                pipe.send("stopped")
                time.sleep(600)

        event.listen(ledger._database.engine, "after_cursor_execute", after)
        event.listen(ledger._database.engine, "commit", after)
        work()
        pipe.send("done")
        time.sleep(600)


@pytest.mark.parametrize("what", ["hide", "swap"])
def test_killed_at_each_point(ledger_url: str, processes: ForkServerContext, what: str) -> None:
    """Readers see all as before, and so does the next loader, which does it all again; done is done."""
    with open_ledger("sqlite://") as undisturbed:
        prepare(undisturbed)
        act(what, undisturbed)()
        expected = content(undisturbed)
    with open_ledger(ledger_url) as ledger:
        prepare(ledger)
        before = content(ledger)
    points = 0
    for point in count(1, 1 if what == "swap" else 3):
        with started(processes, stop_at, point, what, ledger_url) as said, open_ledger(ledger_url) as reader:
            assert content(reader) == (before if said == "stopped" else expected), point
        wait_for_the_server(ledger_url)
        with open_ledger(ledger_url) as reader:
            assert content(reader) == (before if said == "stopped" else expected), point
        if said == "done":
            break
        points = point
    assert points >= 5
    with open_ledger(ledger_url) as ledger, open_ledger("sqlite://") as undisturbed:
        prepare(undisturbed)
        load(undisturbed)
        load(ledger)
        assert content(ledger) == content(undisturbed)
        assert list(ledger.pointers.differences()) == []


def load_for_ever(url: str, pipe: Pipe) -> None:
    """Accept one run after the other, and load each."""
    with open_ledger(url) as ledger:
        pipe.send("begun")
        for number in count(int(str(ledger.state(SAFE[0]).current_run_id)) + 1):
            ledger.judge([accept(key, number) for key in SAFE])
            load(ledger)


def test_killed_at_random(ledger_url: str, processes: ForkServerContext) -> None:
    """Each swap is there wholly or not at all, and a load afterwards brings all of it up to date."""
    chance = random.Random(11)
    runs = []
    with open_ledger(ledger_url) as ledger:
        prepare(ledger)
        for _ in range(5):
            with started(processes, load_for_ever, ledger_url):
                runs += watch(ledger, reads=chance.randint(3, 30))
            ledger.close()
            wait_for_the_server(ledger_url)
        assert runs == sorted(runs)
        load(ledger)
        assert planned(ledger) == []
        assert set(seen(ledger, "clicks").values()) == {ledger.state(SAFE[0]).current_run_id}


def watch(ledger: Ledger, reads: int) -> list[RunId]:
    """Read until the published run has changed, and then some more; return the runs that were seen."""
    runs: list[RunId] = []
    deadline = time.monotonic() + 120
    while len(set(runs)) < 2 or (reads := reads - 1) > 0:
        assert time.monotonic() < deadline
        whole = set(seen(ledger, "clicks").values())
        assert len(whole) == 1, "a mixed instant"
        runs += whole
    return runs
