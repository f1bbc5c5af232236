"""Rehearsals as the console has them carried out: by the command, as a child process, one at a time.

The child reads the configuration anew, so that a contract can be changed and rehearsed while the console
runs. It writes nothing to the ledger; what it found is kept in memory, as long as the console is there.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import msgspec

from sealbook.clock import utc_now
from sealbook.errors import Conflict, Permanent
from sealbook.logs import VARIABLE, LogFormat
from sealbook.views.rehearsal import Rehearsal, RehearsalState

if TYPE_CHECKING:
    from sealbook.config import Settings

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 10
"""How long a child that was told to end may take: it has Spark to end first."""


def rehearsal_command(settings: Settings) -> list[str]:
    """Return the command that rehearses queries of a book, which are named behind it."""
    book = str(settings.file or settings.root)
    options = ["--config", book, "--revalidate", "--dry-run", "--format", "json"]
    return [sys.executable, "-m", "sealbook", "validate", *options]


class Rehearsals:
    """The last rehearsal of each query, by a command to which the query is added."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], Rehearsal] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self.changes = 0
        """Another number whenever there is something new to show."""

    def of(self, source: str, query_name: str) -> Rehearsal:
        """Return the last rehearsal of a query; one that never was, if there is none."""
        with self._lock:
            return self._last.get((source, query_name), Rehearsal(source, query_name))

    def start(self, source: str, query_name: str, *, actor: str) -> Rehearsal:
        """Begin to rehearse a query, and return at once; Conflict while one is under way."""
        with self._lock:
            self._check_is_free()
            begun = Rehearsal(source, query_name, RehearsalState.RUNNING, actor, utc_now())
            said = TemporaryFile()  # noqa: SIM115 -- the thread closes it
            # A session of its own: Ctrl-C in a terminal goes to the console, which ends the child.
            self._child = subprocess.Popen(
                [*self._command, "--source", source, "--query", query_name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env={**os.environ, VARIABLE: LogFormat.JSON},
                start_new_session=True,
            )
            self._keep(begun)
            following = (begun, self._child, said)
            self._thread = threading.Thread(target=self._follow, args=following, name="rehearsal")
            self._thread.start()
        return begun

    def wait(self) -> None:
        """Return when nothing is under way."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        with self._lock:
            self._is_closed = True
        if self._child is not None:
            self._child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_PATIENCE_SECONDS)
            self._child.kill()
        self.wait()

    def _check_is_free(self) -> None:
        if self._is_closed:
            raise Conflict("the console is closing")
        for each in self._last.values():
            if each.state is RehearsalState.RUNNING:
                raise Conflict(
                    f"{each.source}/{each.query_name} is being rehearsed, and one at a time is",
                    remedy="Rehearse this one when that has ended.",
                )

    def _keep(self, rehearsal: Rehearsal) -> None:
        self._last[rehearsal.source, rehearsal.query_name] = rehearsal
        self.changes += 1

    def _follow(self, begun: Rehearsal, child: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        """Read what a child prints until it has ended, and keep what came of it."""
        assert child.stdout is not None  # it was asked for
        with said:
            try:
                with child:
                    found = replace(begun.with_judgements(child.stdout), state=RehearsalState.DONE)
            except Permanent as error:
                found = self._failed(begun, error, child.returncode, said)
        with self._lock:
            self._keep(replace(found, ended_at=utc_now()))

    def _failed(self, begun: Rehearsal, error: Permanent, code: int, said: IO[bytes]) -> Rehearsal:
        said.seek(0)
        lines = said.read().splitlines()
        if not self._is_closed:  # else it was ended on purpose
            stderr = b"\n".join(lines).decode(errors="replace")
            _log.error("a rehearsal failed (exit code %d): %s", code, stderr)
        told = next(filter(None, map(_error_in, reversed(lines))), None)
        if told is None:
            told = {"message": f"{error} (exit code {code})", "remedy": "The console's log says more."}
        failed = replace(begun, state=RehearsalState.FAILED)
        return replace(failed, error=told.get("message"), remedy=told.get("remedy"))


def _error_in(line: bytes) -> dict[str, Any] | None:
    """Return the error that a line of a command's stderr tells; None if it is another line."""
    try:
        event = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None  # another program said it
    return event if event.get("event") == "error" else None
