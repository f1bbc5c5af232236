"""The command line: parse, call, render; nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from sealbook.errors import SealbookError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: the one place that turns errors into messages."""
    from sealbook.cli.app import command
    from sealbook.cli.invocation import Invocation

    invocation = Invocation.from_environment()
    try:
        command().main(args=arguments, prog_name="sealbook", obj=invocation)
    except SealbookError as error:
        from sealbook.cli.failure import exit_code, report

        report(error, debug=invocation.debug)
        return exit_code(error)
    except SystemExit as end:  # how Typer ends, well or not
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return 130
    return 0
