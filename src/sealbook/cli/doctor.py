"""`sealbook doctor`: does all that a book stands on work, and if not, what is to be done?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import load_settings
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, show_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sealbook.views.diagnosis import Finding

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook doctor
  sealbook doctor --spark
  sealbook doctor --quick --format json
"""

_SHOWN = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


@app.command(epilog=_EXAMPLES)
def doctor(
    ctx: typer.Context,
    spark: Annotated[
        bool, typer.Option("--spark", help="Start Spark, too, and have it analyse every rule.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not list the whole raw store and warehouse.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Look at all that the book stands on, and say of each part how it is and what to do.

    Nothing is changed; a small object is written to raw store and warehouse, and taken away again.
    The exit code is 1 if anything fails, whatever there is to warn of.
    """
    from sealbook.views.diagnosis import Level
    from sealbook.views.doctor import diagnose

    found: list[Finding] = []

    def seen() -> Iterator[Finding]:
        for finding in diagnose(lambda: load_settings(ctx), spark=spark, quick=quick):
            found.append(finding)
            yield finding

    if form is Format.JSON:
        show_json(seen())
    else:
        for finding in seen():
            _print(finding)
    if any(finding.level is Level.FAIL for finding in found):
        raise typer.Exit(ExitCode.FAILED)


def _print(finding: Finding) -> None:
    from rich.text import Text

    from sealbook.cli.table import cell, stdout_console

    shown, style = _SHOWN[finding.level]
    line = Text.assemble((f"{shown:<6}", style), cell(f"{finding.part}: {finding.text}"))
    if finding.remedy is not None:
        line.append(f" → {cell(finding.remedy)}", "bold")
    stdout_console().print(line, soft_wrap=True)
