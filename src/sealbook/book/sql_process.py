"""SQL of people in a process of its own, which is ended when it takes too long or too much memory.

The process is handed the settings of the book and a question, and gives back an Arrow stream or an error in
JSON: nothing that it says is run.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from sealbook.errors import ConfigError, Forbidden, InvalidInput, Permanent, SealbookError, Transient
from sealbook.read.sandbox import Sandbox

if TYPE_CHECKING:
    import pyarrow as pa

    from sealbook.config import Settings

_log = logging.getLogger(__name__)

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
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        try:
            said, stderr = process.communicate(
                pickle.dumps((settings, text, sandbox)), timeout=sandbox.seconds
            )
        except subprocess.TimeoutExpired:
            process.kill()
            raise Permanent(
                f"the question took longer than {sandbox.seconds:g} seconds", remedy=_LESS
            ) from None
        except BaseException:
            process.kill()
            raise
    if process.returncode < 0 or stderr.endswith(
        b"MemoryError\n"
    ):  # or what it had left did not do to say so
        raise Permanent(f"the question needs more than {sandbox.megabytes} MB of memory", remedy=_LESS)
    if process.returncode > 0:
        _log.error("SQL could not be answered: %s", stderr.decode(errors="replace"))
        raise Permanent("the question could not be answered", remedy="The console's log says why.")
    return _read(said)


_KINDS: Mapping[str, type[SealbookError]] = {
    each.__name__: each for each in (InvalidInput, Forbidden, Transient, ConfigError)
}
"""What a process may call its failure; anything else is Permanent."""

_LESS = "Ask for fewer days, customers or columns; `sealbook sql` has no such limit."


def _read(said: bytes) -> SqlAnswer:
    import pyarrow as pa

    head, _, stream = said.partition(b"\n")
    told = json.loads(head)
    if "error" in told:
        raise _KINDS.get(told["kind"], Permanent)(told["error"], remedy=told["remedy"])
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
        kind = next((name for name, each in _KINDS.items() if isinstance(error, each)), "")
        head = {"error": str(error), "kind": kind, "remedy": error.remedy}
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")


def _answer(settings: Settings, text: str, sandbox: Sandbox, out: IO[bytes]) -> None:
    import pyarrow as pa

    from sealbook.book.reader import BookReader
    from sealbook.ledger.reader import open_ledger_reader
    from sealbook.ledger.roles import url_in_role

    url = url_in_role(settings.ledger, "viewer", settings.console.ledger_roles[0])
    with BookReader(settings, open_ledger_reader(url, scope=settings.scope)) as book:
        table, is_cut = book.sql_within(text, sandbox)
    out.write(json.dumps({"is_cut": is_cut}).encode() + b"\n")
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
