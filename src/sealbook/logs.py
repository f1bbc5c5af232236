"""What a command says beside its results, on stderr: lines for people, or JSON lines for programs.

The variable `SEALBOOK_LOG` chooses, and not the book: things are said before its settings are read.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from enum import StrEnum

from sealbook.clock import utc_now
from sealbook.errors import ConfigError

VARIABLE = "SEALBOOK_LOG"


class LogFormat(StrEnum):
    """How things are said."""

    TEXT = "text"
    JSON = "json"


def check_format() -> None:
    """Refuse a format that there is not."""
    name = os.environ.get(VARIABLE)
    if name and name not in list(LogFormat):
        raise ConfigError(f"{VARIABLE} is {name!r}", remedy=f"Use {' or '.join(LogFormat)}.")


def is_json() -> bool:
    """Say whether what is said is for programs."""
    return os.environ.get(VARIABLE) == LogFormat.JSON


def choose(form: LogFormat) -> None:
    """Say things so from now on, in this process and those that it starts."""
    os.environ[VARIABLE] = form


def tell(event: str, level: str = "info", **fields: object) -> None:
    """Write a JSON line that says what happened, with what belongs to it by name; None is left out."""
    told = {name: value for name, value in fields.items() if value is not None}
    line = {"at": utc_now().isoformat(timespec="milliseconds"), "level": level, "event": event, **told}
    _write(json.dumps(line, default=_plain, ensure_ascii=False, separators=(",", ":")))


@contextmanager
def said_on_stderr() -> Iterator[None]:
    """Show warnings of every part and library in the chosen format while the block lasts."""
    handler = _Handler(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        level, text = record.levelname.lower(), record.getMessage()
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        if is_json():
            tell("log", level, logger=record.name, message=text, trace=trace)
        else:
            _write("\n".join(filter(None, (f"{level.capitalize()}: {text}", trace))))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _write(line: str) -> None:
    """Write a line in one piece: threads may speak at the same time."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
