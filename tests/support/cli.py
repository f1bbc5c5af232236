"""The command line as a user types it: in this process, which is fast, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sealbook.cli import main

SEALBOOK = Path(sys.executable).with_name("sealbook")
_KEPT_OUT = re.compile(r"SEALBOOK_.*|FORCE_COLOR|NO_COLOR|COLUMNS|GITHUB_ACTIONS|TTY_\w+")


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The whole of stdout, which must be one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """What stderr says, whatever the width that it was laid out for."""
        return re.sub(r"[\s│╭╮╰╯─]+", " ", self.err)


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Ran:
    """Run `sealbook` in this process."""
    out, err = _Captured(), _Captured()
    with chdir(cwd), _environment(env), redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return Ran(code, out.text(), err.text())


def run_process(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Ran:
    """Run `sealbook` in a process of its own."""
    with _environment(env):
        ended = subprocess.run([SEALBOOK, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def answer(book: Path, reply: str, *arguments: str) -> tuple[int, str]:
    """Run a command at a terminal, and answer what it asks; return its exit code and what is shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [SEALBOOK, *arguments], cwd=book, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        os.write(ours, f"{reply}\n".encode())
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1024)
            except OSError:  # the terminal's other side is closed
                break
    os.close(ours)
    return process.returncode, shown.decode()


def interruptible() -> None:
    """Let Ctrl-C reach a new process (its `preexec_fn`), also where the tests run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class _Captured(io.TextIOWrapper):
    """A stream that, unlike StringIO, takes bytes too."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self._bytes.getvalue().decode()


@contextmanager
def _environment(env: Mapping[str, str] | None) -> Iterator[None]:
    """Set what a test says, and keep out what the machine it runs on says."""
    inherited = {name: value for name, value in os.environ.items() if not _KEPT_OUT.fullmatch(name)}
    with patch.dict(os.environ, {**inherited, **(env or {})}, clear=True):
        yield
