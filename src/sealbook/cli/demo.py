"""`sealbook demo`: the whole way of the data, from a source to a query, on this machine."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sealbook
from sealbook.cli.failure import ExitCode
from sealbook.cli.output import message
from sealbook.cli.run import exit_code, print_summary, run_stages
from sealbook.cli.sql import show_answer
from sealbook.errors import ConfigError
from sealbook.model.selection import Selection
from sealbook.model.words import counted
from sealbook.stopping import uninterrupted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.views.run_summary import RunSummary
    from sealbook.views.sums import Standing

app = typer.Typer()

_WHOLE = Selection(source="demo", since="2026-01-01", until="2026-01-10")
_WHOLE_OPTIONS = ("--source", "demo", "--since", "2026-01-01", "--until", "2026-01-10")

_QUESTION = """\
select segments_device as device, count(distinct customer_id) as accounts,
       sum(metrics_clicks)::bigint as clicks, round(sum(metrics_cost_micros) / 1e6)::bigint as cost
from campaign_daily
group by all
order by cost desc"""

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook demo
  sealbook demo my_demo
"""


@app.command(epilog=_EXAMPLES)
def demo(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of the demo book.")] = Path(
        "demo"
    ),
) -> None:
    """Extract, judge and publish 600 made-up partitions, a few of them bad on purpose, and query them.

    It needs no network, and leaves a book on which all other commands work.
    Run it again: the new run replaces what the one before it has published.
    """
    _write_book(folder)
    with sealbook.open(folder) as book:
        plan = book.plan_run(_WHOLE)
        with uninterrupted():
            run_id = book.pipeline.open_run()
            ctx.obj.goes_on_by(["--config", str(folder), "run", *_WHOLE_OPTIONS], run_id)
        message(f"Run {run_id}: {counted(len(plan), 'partition')}")
        summary = run_stages(book, plan, run_id)
        print_summary(summary)
        if exit_code(summary) is ExitCode.FAILED:
            raise typer.Exit(ExitCode.FAILED)
        typer.echo()
        _print_standings(book)
        typer.echo(f"\n{_QUESTION}\n")
        show_answer(book.sql(_QUESTION))
    _say_next(folder, summary)


def _write_book(folder: Path) -> None:
    """Write the files of the demo book; if they are there already, they are used as they are."""
    from sealbook.extract.sources.demo import demo_configuration

    template = (files("sealbook") / "templates" / "demo.yaml").read_text("utf-8")
    contents = {folder / "sealbook.yaml": template, folder / "demo.yaml": demo_configuration()}
    there = [target for target in contents if target.exists()]
    if there and len(there) < len(contents):
        raise ConfigError(
            f"{folder} has {there[0].name}, but is no demo book; nothing was changed",
            remedy="Name another folder.",
        )
    for target, content in contents.items() if not there else ():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}") from None


def _print_standings(book: Book) -> None:
    from sealbook.cli.table import Column, print_table
    from sealbook.views.sums import standings

    columns: list[Column[Standing]] = [
        Column("query", lambda each: each.query),
        Column("accepted", lambda each: each.accepted, number=True),
        Column("rejected", lambda each: each.rejected, style=lambda _: "red", number=True),
        Column("published", lambda each: each.published, number=True),
        Column("rows", lambda each: f"{each.rows:,}", number=True),
    ]
    print_table(standings(book.ledger.reader, book.queries), columns)


def _say_next(folder: Path, summary: RunSummary) -> None:
    missed = [str(each.key) for each in summary.worst_first]
    message(f"\nThe book is in {folder}. Next:")
    for command in (
        "state inspect --status failed",
        *(f"state history {key}" for key in missed[:1]),
        "coverage campaign_daily --kind failed",
        "warehouse verify",
    ):
        message(f"  sealbook --config {folder} {command}")
