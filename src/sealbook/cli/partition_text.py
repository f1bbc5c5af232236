"""A judgement with the lines that it found, and what happened to a partition, as text."""

from __future__ import annotations

import typer
from rich.text import Text

from sealbook.cli.output import message
from sealbook.cli.table import Column, cell, print_table, stdout_console
from sealbook.views.evidence import ShownCheck, ShownVerdict
from sealbook.views.row_content import ShownLine
from sealbook.views.timeline import Moment, Timeline

_STYLES = {
    "passed": "green", "failed": "red", "warned": "yellow",
    "accepted": "green", "rejected": "red", "published": "green", "hidden": "yellow",
}  # fmt: skip


def print_verdict(verdict: ShownVerdict) -> None:
    """Print a judgement: its checks, those that found something first, with the lines that they found."""
    console = stdout_console()
    heading = Text.assemble(
        f"\nJudgement {verdict.attempt}: run {verdict.run_id} was ",
        (verdict.outcome, f"bold {_STYLES[verdict.outcome]}"),
        f", {cell(verdict.judged_at)} UTC",
    )
    console.print(heading, soft_wrap=True)
    for check in verdict.checks:
        if _is_silent(check):
            continue
        found = f"{check.violations:,} found" if check.detail is None else cell(check.detail)
        line = Text.assemble(f"  {cell(check.name)}: ", (check.outcome, _STYLES[check.outcome]), f", {found}")
        console.print(line, soft_wrap=True)
        for each in check.lines:
            console.print(Text(f"    {_line(each)}"), soft_wrap=True)
    passed = [cell(each.name) for each in verdict.checks if _is_silent(each)]
    if passed:
        console.print(Text.assemble("  ", ("passed", "green"), f": {', '.join(passed)}"), soft_wrap=True)


def _is_silent(check: ShownCheck) -> bool:
    return check.passed and not check.violations and check.detail is None


def _line(shown: ShownLine) -> str:
    said = [] if shown.text is None else [cell(shown.text)]
    said += [] if shown.withheld is None else [f"({cell(shown.withheld)})"]
    return f"line {shown.line}: {' '.join(said)}"


def print_timeline(timeline: Timeline) -> None:
    """Print what happened, the oldest first."""
    if not timeline.moments:
        return
    typer.echo()
    columns: list[Column[Moment]] = [
        Column("when (UTC)", lambda each: each.at),
        Column("what", lambda each: each.kind, style=lambda each: _STYLES.get(each.kind, "")),
        Column("run", lambda each: each.run_id, spare=2),
        Column("", lambda each: each.text, wraps=True),
        Column("by", lambda each: each.actor, spare=1),
        Column("why", lambda each: each.reason, spare=3, wraps=True),
    ]
    print_table(timeline.moments, columns)
    if timeline.earlier:
        message(f"{timeline.earlier:,} earlier moments are not shown.")
