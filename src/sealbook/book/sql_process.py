"""SQL of people in a process of its own, which is ended when it takes too long or too much memory.

The process is handed the settings of the book and a question, and gives back an Arrow stream or an error in
JSON: nothing that it says is run.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from sealbook import errors
from sealbook.errors import InvalidInput, Permanent, SealbookError
from sealbook.read.sandbox import Sandbox

if TYPE_CHECKING:
    import pyarrow as pa

    from sealbook.config import Settings

_ALLOCATES = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
"""Takes memory as it is needed: Arrow's own pool sets a gigabyte aside, which would count."""

_BESIDE = 768
"""Megabytes that a process may have beside what the question may take: Python, Arrow, what is read ahead."""


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The first rows of an answer, and whether there are more."""

    table: pa.Table
    is_cut: bool


def ask_in_process(settings: Settings, text: str, sandbox: Sandbox) -> SqlAnswer:
    """Answer a question of what is published, within a sandbox.

    InvalidInput or Forbidden if it is no such question, Permanent if it takes too much.
    """
    command = [sys.executable, "-c", "from sealbook.book.sql_process import answer; answer()"]
    pipe = subprocess.PIPE
    environment = os.environ | _ALLOCATES
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            said, _ = process.communicate(pickle.dumps((settings, text, sandbox)), timeout=sandbox.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Permanent(
                f"the question took longer than {sandbox.seconds:g} seconds", remedy=_LESS
            ) from None
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Permanent(f"the question needs more than {sandbox.megabytes} MB of memory", remedy=_LESS)
    return _read(said)


_LESS = "Ask for fewer days, customers or columns; `sealbook sql` has no such limit."


def _read(said: bytes) -> SqlAnswer:
    import pyarrow as pa

    head, _, stream = said.partition(b"\n")
    told = json.loads(head)
    if "error" in told:
        kind = getattr(errors, told["kind"])
        raise kind(told["error"], remedy=told["remedy"])
    return SqlAnswer(pa.ipc.open_stream(stream).read_all(), told["is_cut"])


def answer() -> None:
    """Be that process: read what is asked, say the answer."""
    settings, text, sandbox = pickle.load(sys.stdin.buffer)
    bound = (sandbox.megabytes + _BESIDE) * 1_000_000
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        _answer(settings, text, sandbox, sys.stdout.buffer)
    except SealbookError as error:
        kind = "InvalidInput" if isinstance(error, InvalidInput) else type(error).__name__
        head = {"error": str(error), "kind": kind, "remedy": error.remedy}
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")


def _answer(settings: Settings, text: str, sandbox: Sandbox, out: IO[bytes]) -> None:
    import pyarrow as pa

    from sealbook.book.reader import BookReader
    from sealbook.ledger.reader import open_ledger_reader

    with BookReader(settings, open_ledger_reader(settings.ledger, scope=settings.scope)) as book:
        table, is_cut = book.sql_within(text, sandbox)
    out.write(json.dumps({"is_cut": is_cut}).encode() + b"\n")
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
