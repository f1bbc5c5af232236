"""Processes that are killed in the middle of their work, and the wait for what a server does about it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from typing import Any

import psycopg


@contextmanager
def started(processes: ForkServerContext, work: Any, *arguments: object) -> Iterator[Any]:
    """Run a process until it says a word to the pipe that it gets last, and kill it after the block."""
    here, there = processes.Pipe()
    process = processes.Process(target=work, args=(*arguments, there))
    process.start()
    there.close()
    try:
        assert here.poll(120), "the process did not get so far"
        yield here.recv()
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        here.close()
    assert process.exitcode == -signal.SIGKILL


def wait_for_the_server(url: str) -> None:
    """PostgreSQL finishes or undoes what a dead client had asked for; wait until it has."""
    if url.startswith("sqlite"):
        return
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        deadline = time.monotonic() + 120
        while connection.execute(query).fetchone() != (0,):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def wait_until(holds: Callable[[], object]) -> None:
    """Ask again and again until something is so."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
