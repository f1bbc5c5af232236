"""`sealbook explain`: why a partition is as it is, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption, KeyArgument
from sealbook.cli.output import Format, message, show, show_object
from sealbook.errors import InvalidInput
from sealbook.model.explanation import Reading
from sealbook.model.words import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from sealbook.model import PartitionKey
    from sealbook.model.explanation import Cause, Explanation, Finding, History, Problem, Way
    from sealbook.model.published_changes import Holder

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook explain google_ads/1234567890/campaign_daily/2026-01-01
  sealbook explain google_ads/123-456-7890/campaign_daily/2026-01-01 --format json
  sealbook explain google_ads/1234567890/campaign_daily/2026-01-01 --consumers
  sealbook explain google_ads/1234567890/campaign_daily/2026-01-01 --full
"""

_HEADINGS = {
    Reading.READABLE: ("READABLE", "bold green"),
    Reading.NOT_READABLE: ("NOT READABLE", "bold red"),
    Reading.NOT_DUE: ("NOT DUE", "bold"),
    Reading.NOT_EXPECTED: ("NOT EXPECTED", "bold"),
}


@app.command(epilog=_EXAMPLES)
def explain(
    ctx: typer.Context,
    key: KeyArgument,
    consumers: Annotated[
        bool, typer.Option("--consumers", help="Say who has which run of it: cuts, and consumers by name.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also show the last judgement with the lines that it found, and all that happened."
        ),
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --full: this judgement, not the last one.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say what consumers get of a partition, what is wrong with it, what happens next, and what to do.

    It works for every partition, also for one that nobody ever touched.
    """
    if full and consumers:
        raise InvalidInput("--full and --consumers are two questions", remedy="Ask one after the other.")
    if full:
        _explain_in_full(ctx, key, attempt, form)
        return
    if attempt is not None:
        raise InvalidInput("a judgement is named", field="attempt", remedy="Give --full as well.")
    with open_book(ctx) as book:
        if consumers:
            _show_holders(book.ledger.pointers.holders(key), form)
            return
        found = book.explain(key)
    if form is Format.JSON:
        show_object(found.to_dict())
    else:
        _print(found)


def _show_holders(holders: Sequence[Holder], form: Format) -> None:
    """Show who has a run of the partition, those first whose run was withdrawn since."""
    from sealbook.cli.table import Column

    columns: list[Column[Holder]] = [
        Column("who", lambda each: each.holder),
        Column("name", lambda each: each.name),
        Column("run", lambda each: each.run_id),
        Column("withdrawn since", lambda each: each.withdrawn, style=lambda _: "red"),
    ]
    show(sorted(holders, key=lambda each: each.withdrawn is None), columns, form)
    withdrawn = sum(each.withdrawn is not None for each in holders)
    who = f"{sum(each.holder == 'cut' for each in holders):,} of them cuts"
    said = counted(len(holders), "holder", "has", "have")
    message(f"{said} a run of it, {who}; of {withdrawn:,} that run was withdrawn since.")


def _explain_in_full(ctx: typer.Context, key: PartitionKey, attempt: int | None, form: Format) -> None:
    from sealbook.views.partition import view_partition

    with open_book(ctx) as book:
        book.catch_up()
        found = view_partition(book.reader, key, attempt=attempt)
    if form is Format.JSON:
        show_object(found.to_dict())
        return
    from sealbook.cli.partition_text import print_timeline, print_verdict

    _print(found.explanation)
    if found.verdict is not None:
        print_verdict(found.verdict)
    print_timeline(found.timeline)


def _print(found: Explanation) -> None:
    from rich.text import Text

    from sealbook.cli.table import cell, stdout_console

    console = stdout_console()
    heading, style = _HEADINGS[found.standing.reading]
    _say(console, Text(str(found.key), "bold"))
    _say(console, Text.assemble((heading, style), f". {cell(found.standing.text)}"))
    if found.day is not None:
        _say(console, Text(found.day))
    for problem in found.problems:
        console.print()
        _print_problem(console, problem)
    console.print()
    if found.following is not None:
        _say(console, Text.assemble(("Next: ", "bold"), cell(found.following.text)))
        _print_ways(console, found.following.ways)
    if found.learned is not None:
        _say(
            console, Text.assemble(("Due: ", "bold"), f"{found.learned.text}, as days were restated so far.")
        )
        for reason in found.learned.reasons:
            _say(console, Text(f"  {reason}"))
    _print_history(console, found.history)


def _print_problem(console: Console, problem: Problem) -> None:
    from rich.text import Text

    from sealbook.cli.table import cell

    since = "" if problem.since is None else f" since {problem.since:%Y-%m-%d %H:%M} UTC"
    _say(console, Text.assemble((problem.kind, "bold yellow"), f"{since}: {cell(problem.text)}."))
    for each in problem.findings:
        detail = cell(each.detail or f"{each.violations:,} found")
        _say(console, Text.assemble((cell(each.check), "bold"), f": {detail}{_lines(each)}"), indent=2)
    for depth, line in _cause_lines(problem.causes, problem.more):
        _say(console, Text(cell(line)), indent=2 * depth + 2)
    _print_ways(console, problem.ways)


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


def _print_ways(console: Console, ways: Sequence[Way]) -> None:
    """Print each command whole, so that it can be copied: beside its purpose, or below it."""
    from rich.text import Text

    widest = max((len(each.purpose) for each in ways), default=0)
    beside = all(4 + widest + len(each.command) <= console.width for each in ways)
    for each in ways:
        line = Text()
        if beside:
            line.append(f"  {each.purpose:<{widest}}  ").append(each.command, "cyan")
            note = "" if each.note is None else f"  ({each.note})"
            line.append(note if len(line) + len(note) <= console.width else "", "dim")
        else:
            note = "" if each.note is None else f", {each.note}"
            line.append(f"  {each.purpose}{note}\n    ").append(each.command, "cyan")
        console.print(line, soft_wrap=True)


def _print_history(console: Console, history: History) -> None:
    from rich.text import Text

    line = Text("History: ", "bold")
    if not history.runs:
        _say(console, line.append("nobody has ever worked on it.", "not bold"))
        return
    published = {0: "never published", 1: "published once"}.get(
        history.publications, f"published {history.publications:,} times"
    )
    told = f"{counted(history.runs, 'run')}, {counted(history.judgements, 'judgement')}, {published}."
    _say(console, line.append(told, "not bold"))
    _print_ways(console, history.ways)


def _say(console: Console, text: Text, *, indent: int = 0) -> None:
    """Print a text that wraps below itself."""
    from rich.text import Text

    for line in text.wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)
