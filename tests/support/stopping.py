"""Commands in a process of their own that are stopped by a signal, and what they leave behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from tests.support.cli import SEALBOOK, interruptible, run

SECONDS_TO_END = 5
LONGEST_WAIT_SECONDS = 200
_MARK = "SEALBOOK_TEST_COMMAND"
_BEGINNING = re.compile(r"^(Run|Plan).*\n")
_LINE = re.compile(r"Stopped\. To go on: sealbook (.+)")


@dataclass
class Command:
    """A command at work. All that it starts carries its mark, wherever it goes."""

    process: subprocess.Popen[str]
    mark: str

    def all(self) -> list[psutil.Process]:
        """Return every process that it started, and itself, as far as they are there."""
        return [each for each in psutil.process_iter() if self._is_marked(each)]

    def wait_for_process(self, has: Callable[[list[str]], bool]) -> None:
        """Wait until it has started a process with such a command line."""
        self.wait_until(lambda: any(has(each) for each in map(_command_line, self.all())))

    def suspend(self, has: Callable[[list[str]], bool]) -> None:
        """Have a process that it started do nothing any more."""
        for each in self.all():
            if has(_command_line(each)):
                each.suspend()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; that the command ends before it is a failure."""
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None, f"it ended too early: {self.process.communicate()}"
            assert time.monotonic() < deadline, "it did not get so far"
            time.sleep(0.01)

    def stop(self, number: signal.Signals) -> Stopped:
        """Send a signal, and wait for the command to end."""
        self.send(number)
        return self.ended(number)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, and do not wait."""
        self.process.send_signal(number)

    def ended(self, number: signal.Signals) -> Stopped:
        """Wait for the command to end, after a signal was sent."""
        out, err = self.process.communicate(timeout=LONGEST_WAIT_SECONDS)
        return Stopped(self, number, out, err)

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:  # it has ended, or is somebody else's
            return False


@dataclass(frozen=True)
class Stopped:
    """What came of a command that was stopped."""

    command: Command
    number: signal.Signals
    out: str
    err: str

    @property
    def code(self) -> int:
        """The exit code."""
        return self.command.process.returncode

    def check(self, book: Path) -> None:
        """It said how to go on, left no process and no open step; and the command that it said goes on."""
        assert self.code == 128 + self.number, (self.out, self.err)
        assert self.out == ""
        said = _BEGINNING.sub("", self.err)
        match = _LINE.fullmatch(said.strip())
        assert match, self.err
        deadline = time.monotonic() + SECONDS_TO_END
        while (left := self.command.all()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left == []
        check_steps_told(book)
        ran = run(*shlex.split(match[1]), cwd=book)
        assert ran.code == 0, ran.err


@contextmanager
def started(book: Path, *arguments: str) -> Iterator[Command]:
    """Start `sealbook` so that signals reach it, as in a terminal."""
    mark = uuid4().hex
    with subprocess.Popen(
        [SEALBOOK, *arguments],
        cwd=book,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, _MARK: mark},
        preexec_fn=interruptible,
    ) as process:
        command = Command(process, mark)
        try:
            yield command
        finally:
            for each in command.all():
                each.kill()


def is_java(command_line: list[str]) -> bool:
    """Tell the Java process of a session, from its first moment on."""
    return "org.apache.spark.deploy.SparkSubmit" in command_line


def check_steps_told(book: Path) -> None:
    """No attempt of a step is open, of any run."""
    for snapshot in run("runs", "--format", "json", cwd=book).json:
        assert snapshot["inconsistent"] == []
        for step in snapshot["steps"]:
            assert all(attempt["status"] != "RUNNING" for attempt in step["attempts"]), snapshot


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
