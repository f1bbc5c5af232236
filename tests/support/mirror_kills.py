"""Mirrors that are killed at a step of their work: a call of ours, or of what writes the table."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from contextlib import closing, suppress
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext
from types import FrameType

import pyarrow as pa

from sealbook.errors import IllegalMove
from tests.support.killing import wait_for_the_server
from tests.support.ledger import reject
from tests.support.mirrors import Lake, same_rows
from tests.support.published import QUERY, key, publish

_PACKAGES = ("sealbook.mirror", "sealbook.ledger", "sealbook.storage", "sealbook.warehouse", "pyiceberg")
_LOADED = (
    "psycopg",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "sealbook.ledger",
    "sealbook.mirror.delta",
    "sealbook.mirror.iceberg",
    "sealbook.mirror.opening",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
)
_KEYS = [key(customer, day) for customer in range(3) for day in range(3)]


def fork_mirrors(kind: str, url: str, root: str, pipe: Pipe) -> None:
    """Fork a process for each step that is asked for: all that it needs is loaded, and nothing has begun."""
    for name in _LOADED:
        import_module(name)
    while True:
        step = pipe.recv()
        if step is None:
            return
        steps_from, steps_to = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(steps_to, str(_mirror_until(step, kind, url, root)).encode())
            os._exit(0)
        os.close(steps_to)
        _, status = os.waitpid(child, 0)
        with os.fdopen(steps_from) as told:
            pipe.send((os.waitstatus_to_exitcode(status), told.read()))


def _mirror_until(step: int, kind: str, url: str, root: str) -> int:
    """Run a mirror, and die by SIGKILL at a step; else return how many steps there were."""
    steps = count(1)

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "return") and frame.f_globals.get("__name__", "").startswith(_PACKAGES):
            taken = next(steps)
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    with closing(Lake.open(kind, url, root)) as lake:
        threading.setprofile(watch)
        sys.setprofile(watch)
        lake.run()
        sys.setprofile(None)
    return next(steps) - 1


class KilledMirror:
    """A book that changes, and its mirror, which is killed again and again."""

    def __init__(self, processes: ForkServerContext, kind: str, url: str, root: str) -> None:
        self._pipe, there = processes.Pipe()
        self._forks = processes.Process(target=fork_mirrors, args=(kind, url, root, there))
        self._forks.start()
        there.close()
        self._chance = random.Random(7)
        self._runs = count(1)
        self._checked: set[str] = set()
        self.lake = Lake.open(kind, url, root)
        self.instants: dict[str, pa.Table] = {}
        """What the book had at each token."""
        self.kills = 0
        self._remember()

    def change(self) -> None:
        """Publish another run of some partitions, or demote one."""
        ledger, number = self.lake.book.ledger, next(self._runs)
        if number % 4 == 0:
            chosen = self._chance.choice(_KEYS)
            state = ledger.state(chosen)
            with suppress(IllegalMove):
                ledger.judge([reject(chosen, int(state.current_run_id or 0), again=f"k{number}")])
        else:
            keys, version = self._chance.sample(_KEYS, 2), self._chance.choice("12")
            publish(ledger, self.lake.warehouse, keys, number, version=version, rows=2)
        self._remember()

    def _remember(self) -> None:
        with self.lake.book.snapshot() as at:
            self.instants[at.token] = at.table(QUERY)

    def run(self, step: int) -> int | None:
        """Run the mirror until a step; return how many there were if it came to its end."""
        self._pipe.send(step)
        code, told = self._pipe.recv()
        assert code in (0, -signal.SIGKILL), code
        self.kills += code != 0
        self.lake.close()  # it opens again by itself; only the dead are waited for
        wait_for_the_server(self.lake.url)
        return int(told) if code == 0 else None

    def close(self) -> None:
        """End the process that forks others, and close the book."""
        self._pipe.send(None)
        self._forks.join()
        self._pipe.close()
        self.lake.close()

    def check(self) -> None:
        """Hold each commit that is new against the instant that it names; they come in order."""
        found = self.lake.commits()
        tokens = [token for _, token in found]
        order = list(self.instants)
        places = [order.index(str(token)) for token in tokens]
        assert places == sorted(set(places)), "an instant was repeated, or came out of order"
        for commit, token in found:
            if commit not in self._checked:
                assert same_rows(self.lake.rows(commit), self.instants[str(token)]), commit
                self._checked.add(commit)


def kill_rounds(killed: KilledMirror, rounds: int) -> None:
    """Kill the mirror at one step after the other, so many times, while the book changes."""
    killed.change()
    whole = killed.run(0)
    assert whole is not None
    for step in range(1, rounds + 1):
        killed.change()
        # The first run of a table has the most steps; what a later one does not reach, it has done.
        killed.run(1 + (step - 1) * whole // rounds)
        killed.check()
    assert killed.run(0) is not None
    killed.check()
    assert killed.lake.is_equal()
