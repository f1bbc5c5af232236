"""`sealbook explain`: why a partition is as it is, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption, KeyArgument
from sealbook.cli.output import Format, show_object
from sealbook.model.explanation import Reading
from sealbook.model.words import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from sealbook.model.explanation import Cause, Explanation, Finding, Problem, Standing, Way

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook explain google_ads/1234567890/campaign_daily/2026-01-01
  sealbook explain google_ads/123-456-7890/campaign_daily/2026-01-01 --format json
"""

_HEADINGS = {
    Reading.READABLE: ("READABLE", "bold green"),
    Reading.NOT_READABLE: ("NOT READABLE", "bold red"),
    Reading.NOT_DUE: ("NOT DUE", "bold"),
    Reading.NOT_EXPECTED: ("NOT EXPECTED", "bold"),
}


@app.command(epilog=_EXAMPLES)
def explain(ctx: typer.Context, key: KeyArgument, form: FormatOption = Format.TABLE) -> None:
    """Say what consumers get of a partition, what is wrong with it, what happens next, and what to do.

    It works for every partition, also for one that nobody ever touched.
    """
    with open_book(ctx) as book:
        found = book.explain(key)
    if form is Format.JSON:
        show_object(found.to_dict())
    else:
        _print(found)


def _print(found: Explanation) -> None:
    from sealbook.cli.table import stdout_console

    console = stdout_console()
    console.print(str(found.key), style="bold", soft_wrap=True)
    _print_standing(console, found.standing)
    for problem in found.problems:
        _print_problem(console, problem)
    console.print()
    _say(console, "Next: ", found.following.text)
    _print_history(console, found)


def _print_standing(console: Console, standing: Standing) -> None:
    from rich.text import Text

    heading, style = _HEADINGS[standing.reading]
    details = []
    if standing.since is not None:
        details.append(f"since {_time(standing.since)}")
    if standing.record_count is not None:
        details.append(counted(standing.record_count, "row"))
    if standing.schema_version is not None:
        details.append(f"schema_version {standing.schema_version}")
    line = Text.assemble((heading, style), f" {', '.join(details)}." if details else ".", f" {standing.text}")
    console.print(line)


def _print_problem(console: Console, problem: Problem) -> None:
    from rich.text import Text

    since = "" if problem.since is None else f", since {_time(problem.since)}"
    console.print()
    console.print(Text.assemble((problem.kind, "bold yellow"), f"{since}: {problem.text}."))
    _print_findings(console, problem.findings)
    for depth, line in _cause_lines(problem.causes, problem.more):
        _say(console, "  " * (depth + 1), line)
    _print_ways(console, problem.ways)


def _print_findings(console: Console, findings: Iterable[Finding]) -> None:
    for each in findings:
        detail = each.detail or f"{each.violations:,} found"
        _say(console, "  ", f"{each.check}: {detail}{_lines(each)}")


def _lines(finding: Finding) -> str:
    if not finding.lines:
        return ""
    more = ", …" if finding.violations > len(finding.lines) else ""
    noun = "line" if len(finding.lines) == 1 and not more else "lines"
    return f" ({noun} {', '.join(map(str, finding.lines))}{more})"


def _cause_lines(causes: Iterable[Cause], more: int, depth: int = 0) -> Iterator[tuple[int, str]]:
    for cause in causes:
        yield depth, f"← {cause.key}: {cause.text}"
        yield from _cause_lines(cause.causes, cause.more, depth + 1)
    if more:
        yield depth, f"← and {more:,} more"


def _print_ways(console: Console, ways: Iterable[Way]) -> None:
    """Print each command whole, so that it can be copied: beside its purpose, or below it."""
    from rich.text import Text

    shown = list(ways)
    widest = max((len(each.purpose) for each in shown), default=0)
    beside = all(4 + widest + len(each.command) <= console.width for each in shown)
    for each in shown:
        line = Text(f"  {each.purpose:<{widest}}  " if beside else f"  {each.purpose}:\n    ", "dim")
        line.append(each.command, "cyan")
        console.print(line, soft_wrap=True)


def _print_history(console: Console, found: Explanation) -> None:
    history = found.history
    if not history.runs:
        _say(console, "History: ", "nobody has ever worked on it.")
        return
    published = "never published" if not history.publications else _times(history.publications)
    said = f"{counted(history.runs, 'run')}, {counted(history.judgements, 'judgement')}, {published}."
    _say(console, "History: ", said)
    _print_ways(console, history.ways)


def _times(publications: int) -> str:
    return "published once" if publications == 1 else f"published {publications:,} times"


def _say(console: Console, label: str, text: str) -> None:
    """Print a text that wraps below itself."""
    from rich.padding import Padding
    from rich.text import Text

    indent = len(label) if not label.strip() else 0
    line: Text | Padding = Text.assemble((label.strip() + " " if label.strip() else "", "bold"), text)
    console.print(Padding(line, (0, 0, 0, indent), expand=False) if indent else line)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
