"""Mirrors that are killed at a step of their work: a call of ours, or of what writes the table."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext

from tests.support.killing import wait_for_the_server
from tests.support.mirror_histories import ChangingBook
from tests.support.mirrors import Lake
from tests.support.steps import Steps

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
    with closing(Lake.open(kind, url, root)) as lake:
        with Steps(_PACKAGES, step, lambda: os.kill(os.getpid(), signal.SIGKILL)) as steps:
            lake.run()
        return steps.taken


_GOLDEN = 0.618034
"""Multiples of it lie evenly between whole numbers, however many there are."""


class KilledMirror:
    """A book that changes, and its mirror, which is killed again and again."""

    def __init__(self, processes: ForkServerContext, kind: str, url: str, root: str) -> None:
        self._pipe, there = processes.Pipe()
        self._forks = processes.Process(target=fork_mirrors, args=(kind, url, root, there))
        self._forks.start()
        there.close()
        self._checked: set[str] = set()
        self.lake = Lake.open(kind, url, root)
        self.book = ChangingBook(self.lake)
        self.kills = 0

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
        self._checked.update(self.book.history.check(self.lake, self._checked))


def kill_often(killed: KilledMirror, kills: int) -> None:
    """Kill the mirror so many times, at steps that are spread over a run, while the book changes."""
    steps = 0
    for _ in range(4):  # of each kind of change, without a kill, to know how many there are
        killed.book.change()
        steps = max(steps, killed.run(0) or 0)
    for number in count(1):
        killed.book.change()
        killed.run(1 + int(number * _GOLDEN % 1 * steps))
        killed.check()
        if killed.kills == kills:
            break
        if number % 2:  # else the next one begins where this one was killed, and has more to do
            assert killed.run(0) is not None
    assert killed.run(0) is not None
    killed.check()
    assert killed.lake.is_equal()
