"""Mirrors that are killed at a step of their work: a call of ours, or of what writes the table."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from contextlib import closing, suppress
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
_KEYS = [key(customer, day) for customer in range(3) for day in range(3)]


def mirror_until(step: int, kind: str, url: str, root: str, pipe: Pipe) -> None:
    """Run a mirror, and die by SIGKILL at a step; else say how many steps there were."""
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
    pipe.send(next(steps) - 1)


class KilledMirror:
    """A book that changes, and its mirror, which is killed again and again."""

    def __init__(self, processes: ForkServerContext, kind: str, url: str, root: str) -> None:
        self._processes = processes
        self._arguments = (kind, url, root)
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
        here, there = self._processes.Pipe()
        process = self._processes.Process(target=mirror_until, args=(step, *self._arguments, there))
        process.start()
        there.close()
        process.join()
        self.kills += process.exitcode == -signal.SIGKILL
        steps = here.recv() if process.exitcode == 0 else None
        here.close()
        assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
        self.lake.close()  # it opens again by itself; only the dead are waited for
        wait_for_the_server(self.lake.url)
        return steps

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
    stride = max(1, whole // rounds)
    for step in range(1, rounds + 1):
        killed.change()
        # The first run of a table has the most steps; what a later one does not reach, it has done.
        killed.run(1 + step * stride % whole)
        killed.check()
    assert killed.run(0) is not None
    killed.check()
    assert killed.lake.is_equal()
