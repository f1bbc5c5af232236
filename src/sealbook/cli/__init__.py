"""The command line: parse, call, render; nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sealbook.errors import SealbookError
from sealbook.logs import check_format, said_on_stderr
from sealbook.stopping import Stop, stoppable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: the one place that turns errors into messages.

    Without arguments it is the command of this process, which has nothing else to do after it.
    """
    with stoppable(until_exit=arguments is None) as stop, said_on_stderr():
        try:
            return _run(sys.argv[1:] if arguments is None else list(arguments), stop)
        except BaseException:
            if stop.exit_code is None:
                raise
            return stop.exit_code  # before there was anything to say


def _run(arguments: Sequence[str], stop: Stop) -> int:
    from sealbook.cli.app import command
    from sealbook.cli.failure import ExitCode, exit_code, report, say_stopped
    from sealbook.cli.invocation import Invocation

    invocation = Invocation.of(arguments)
    failure: SealbookError | None = None
    code = 0
    try:
        try:
            check_format()
            command().main(args=arguments, prog_name="sealbook", obj=invocation)
        except SealbookError as error:
            failure, code = error, exit_code(error)
        except SystemExit as end:  # how Typer ends, well or not
            code = end.code if isinstance(end.code, int) else 0
            if isinstance(end.__context__, BrokenPipeError):
                code = ExitCode.NOT_READ
        stopped = stop.settle()
    except BaseException:
        stopped = stop.settle()
        if stopped is None:
            raise
    if stopped is not None:  # then it is the cause of whatever failed
        say_stopped(invocation)
        return stopped
    if failure is not None:
        report(failure, invocation)
    return code
