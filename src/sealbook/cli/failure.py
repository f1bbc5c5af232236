"""How a command ends that failed or was stopped: its exit code, and what is said about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from sealbook.errors import (
    BadQuery,
    ConfigError,
    InvalidInput,
    SealbookError,
    Transient,
    UnknownOutcome,
    Unwritable,
    first_line,
)
from sealbook.logs import is_json, tell

if TYPE_CHECKING:
    from sealbook.cli.invocation import Invocation


class ExitCode(IntEnum):
    """What a command's exit code says."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    DONE_IN_PART = 3
    NOT_READ = 128 + 13
    """Whoever read the output stopped reading: as if SIGPIPE had ended the command."""


def exit_code(error: SealbookError) -> ExitCode:
    """Tell what the user must change apart from what went wrong."""
    return ExitCode.WRONG_USAGE if isinstance(error, ConfigError | InvalidInput) else ExitCode.FAILED


def report(error: SealbookError, invocation: Invocation) -> None:
    """Say on stderr what happened, why, and the way out; with --debug, also where in the code."""
    # A run that broke off by what may pass is not over; any other error it would only meet again.
    may_pass = invocation.run_id is not None and isinstance(error, Transient | Unwritable | UnknownOutcome)
    to_go_on = invocation.command_to_go_on() if may_pass else None
    trace = None
    if invocation.debug:
        import traceback

        trace = "".join(traceback.format_exception(error))
    if is_json():
        tell(
            "error",
            "error",
            error=type(error).__name__,
            message=str(error),
            because=list(_causes(error)) or None,
            excerpt=error.excerpt if isinstance(error, BadQuery) else None,
            remedy=error.remedy,
            to_go_on=to_go_on,
            trace=trace,
        )
    else:
        _report_to_people(error, to_go_on, trace)


def _report_to_people(error: SealbookError, to_go_on: str | None, trace: str | None) -> None:
    from rich.text import Text

    from sealbook.cli.output import message

    if trace is not None:
        sys.stderr.write(trace)
    message(Text.assemble(("Error: ", "bold red"), str(error)))
    if isinstance(error, BadQuery) and error.excerpt is not None:
        message(Text(error.excerpt))
    for cause in _causes(error):
        message(Text.assemble(("  because: ", "red"), cause))
    if error.remedy:
        message(Text.assemble(("  remedy: ", "bold green"), error.remedy))
    if to_go_on is not None:
        message(f"To go on: {to_go_on}")


def say_stopped(invocation: Invocation) -> None:
    """Say on stderr which command goes on with what was stopped, if it had begun with anything."""
    command = invocation.command_to_go_on()
    if command is not None:
        from sealbook.cli.output import message

        message(f"Stopped. To go on: {command}")


def _causes(error: SealbookError) -> Iterator[str]:
    """Yield what lies behind an error, without what the errors above it have said already."""
    said = str(error)
    cause = error.__cause__
    while cause is not None:
        # A driver's later lines repeat the statement and its parameters: for --debug only.
        text = first_line(cause)
        is_said = text.rpartition(": ")[2].strip() in said  # what comes before is where it was said
        if not is_said and not _is_report(cause, text):
            yield text
        said += text
        cause = cause.__cause__


def _is_report(cause: BaseException, text: str) -> bool:
    """Tell an account of a request, statement or job, of which the error above has said what it means."""
    return type(cause).__module__.startswith(("obstore", "sqlalchemy", "py4j", "pyspark")) or "<?xml" in text
