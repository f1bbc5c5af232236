"""R-RAW-2, R-RAW-4: SIGKILL at every step of write and seal, on a folder and on S3."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from sealbook.clock import utc_now
from sealbook.errors import AlreadySealed
from sealbook.raw import RawStore, Row, leftovers
from sealbook.raw.layout import RunPaths
from sealbook.raw.leftovers import LEAST_AGE
from tests.support.s3 import KEY, RUN, Fault, S3Server, numbered, seal_rows

PATHS = RunPaths(KEY, RUN)
ROWS = 700
# What Python reports before it touches a file or a directory.
FILE_EVENTS = ("open", "os.mkdir", "os.link", "os.rename", "os.remove")
S3_STEPS = 2

Act = Callable[..., None]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def extract(url: str) -> None:
    """Write and seal like an extraction."""
    seal_rows(RawStore.open(url), numbered(ROWS))


def extract_until_step(url: str, step: int) -> None:
    """Die right before the given access to a file or directory of the store."""
    store = RawStore.open(url)
    steps = iter(range(1, step))

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event in FILE_EVENTS and "run_id=" in str(args[0]) and next(steps, None) is None:
            die()

    sys.addaudithook(watch)
    seal_rows(store, numbered(ROWS))


def extract_until_row(url: str, line: bytes, row: int) -> None:
    """Die in the middle of the rows."""

    def rows() -> Iterator[Row]:
        for _ in range(row):
            yield line
        die()

    seal_rows(RawStore.open(url), rows())


def started(act: Act, *args: object) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=act, args=args)
    process.start()
    return process


def check_and_finish(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is sealed is right, the same run can finish the work, and a clean-up removes all else."""
    store = RawStore.open(url)
    if store.is_sealed(KEY, RUN):
        assert len(list(store.read(KEY, RUN).lines())) == ROWS
    with suppress(AlreadySealed):
        seal_rows(store, numbered(ROWS))
    assert store.read(KEY, RUN).metadata.record_count == ROWS
    assert len(list(store.read(KEY, RUN).lines())) == ROWS
    assert list(store.leftovers(age=LEAST_AGE)) == []
    with monkeypatch.context() as later:
        later.setattr(leftovers, "utc_now", lambda: utc_now() + LEAST_AGE)
        store.remove(store.leftovers(age=LEAST_AGE))
    assert store._storage.names("demo") == [PATHS.metadata, store.read(KEY, RUN).path]
    assert len(list(store.read(KEY, RUN).lines())) == ROWS


def test_killed_before_each_access_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step after step, until there is none left to die before."""
    for step in count(1):
        url = str(tmp_path / f"killed-before-{step}")
        process = started(extract_until_step, url, step)
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        check_and_finish(url, monkeypatch)
    assert step > 5
    assert RawStore.open(url).read(KEY, RUN).metadata.record_count == ROWS


@pytest.mark.parametrize("step", range(1, S3_STEPS + 1))
@pytest.mark.parametrize("applied", [True, False], ids=["after", "before"])
def test_killed_around_each_request_to_s3(
    s3_url: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, step: int, applied: bool
) -> None:
    """Whether or not the request that was under way still takes effect."""
    processes: list[BaseProcess] = []

    def kill() -> None:
        pid = processes[0].pid or 0
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    s3_server.expect(Fault(step, applied, then=kill))
    processes.append(started(extract, s3_url))
    processes[0].join()
    assert processes[0].exitcode == -signal.SIGKILL
    assert s3_server.requests == step
    check_and_finish(s3_url, monkeypatch)


@pytest.mark.parametrize("line", [b"{}", b'{"text":"' + b"x" * 50_000 + b'"}'], ids=["small", "large"])
def test_killed_in_the_middle_of_the_rows(raw_url: str, monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    """With large rows an upload in several parts is under way."""
    process = started(extract_until_row, raw_url, line, 600)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not RawStore.open(raw_url).is_sealed(KEY, RUN)
    check_and_finish(raw_url, monkeypatch)
