"""`sealbook demo`: the whole way of the data, from a source to a query and back, on this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sealbook
from sealbook.cli.demo_book import FIRST_DAY, LAST_DAY, STRICTER, make_stricter, prepare_book
from sealbook.cli.failure import ExitCode
from sealbook.cli.output import message
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from sealbook.model import RunId

app = typer.Typer()

_GIVEN_UP = "demo/1012/campaign_daily/2026-01-07"
_KEY = "demo/1005/device_daily/2026-01-30"
_BACKOFF_SECONDS = 1
"""As in the settings of the demo book."""

_ROWS = "select count(*) as rows from device_daily where customer_id = '1005' and logical_date = '2026-01-30'"
_QUESTION = (
    "select segments_device as device, sum(metrics_clicks)::bigint as clicks,"
    " round(sum(metrics_cost_micros) / 1e6)::bigint as cost"
    " from campaign_daily group by all order by cost desc"
)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook demo
  sealbook demo my_demo --timings
  sealbook demo large_demo --partitions 5000
"""


@app.command(epilog=_EXAMPLES)
def demo(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of the demo book.")] = Path(
        "demo"
    ),
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At least so many partitions; 1,800 by default.")
    ] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Show where the time went.")] = False,
) -> None:
    """Extract, judge and publish 1,800 made-up partitions; then retry, demote, roll back and ask.

    Each step is a command that you can give yourself. A few partitions are bad on purpose.
    It needs no network, and leaves a book on which all other commands work. Run it again: it begins again.
    """
    prepare_book(folder, partitions)
    story = _Story(ctx, folder)
    _tell(story)
    if timings:
        _print_timings(story)
    _say_next(folder)


@dataclass
class _Story:
    """Gives commands on the demo book, each under a heading, and takes the time of each."""

    ctx: typer.Context
    folder: Path
    taken: list[tuple[str, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    first_run: RunId | None = None
    first_grid: float = 0.0

    def give(self, *arguments: str, because: str | None = None) -> None:
        """Give a command as if it was typed in the folder of the book; one that fails ends the demo."""
        from rich.text import Text

        from sealbook.cli.table import stdout_console

        command = " ".join(["sealbook", *map(_quoted, arguments)])
        console = stdout_console()
        if because is not None:
            console.print(Text(f"\n{because}", "bold"), soft_wrap=True)
        console.print(Text(f"$ {command}", "cyan"), soft_wrap=True)
        invocation, root = self.ctx.obj, self.ctx.find_root().command
        given = ["--config", str(self.folder), *arguments]
        # Whoever stops the demo goes on by the command that was stopped.
        invocation.arguments, invocation.run_id, invocation.has_begun = given, None, False
        began = time.monotonic()
        code = root.main(args=given, prog_name="sealbook", obj=invocation, standalone_mode=False)
        name = " ".join(takewhile(str.isalpha, arguments))
        self.taken.append((name, time.monotonic() - began))
        if code not in (None, ExitCode.DONE, ExitCode.DONE_IN_PART):
            raise typer.Exit(code)


def _quoted(argument: str) -> str:
    """Return an argument for a shell; SQL, which has quotes of its own, as people would write it."""
    return f'"{argument}"' if "'" in argument else shlex.quote(argument)


def _tell(story: _Story) -> None:
    story.give(
        "run", "--since", FIRST_DAY, "--until", LAST_DAY,
        because="Extract, judge, publish. A few partitions are bad on purpose",
    )  # fmt: skip
    story.first_run = story.ctx.obj.run_id
    story.give("status", because="How every partition stands")
    story.first_grid = time.monotonic() - story.began
    story.give("warehouse", "cut", "create", because="Pin what can be read now")
    cut, good_run = _newest_cut(story.folder), _published_run(story.folder)

    time.sleep(_BACKOFF_SECONDS)  # of what failed last
    story.give("control", "tick", because="Let the loop retry: one recovers, one is given up")
    story.give("state", "terminal", "list")

    story.give("run", _KEY, because="Fetch a day again: its source gives a tenth of the rows, which passes")
    story.give("sql", _ROWS)
    make_stricter(story.folder)
    story.give(
        "validate", "--revalidate", "--query", "device_daily",
        because=f"Demote it, by a stricter contract: demo.yaml has got {STRICTER}",
    )  # fmt: skip
    story.give("sql", _ROWS, because="Consumers do not see it any more")
    story.give(
        "state", "rollback", _KEY, "--to", good_run, "--reason", "the newest run lacks rows",
        because="Roll back to the run before it",
    )  # fmt: skip
    story.give("sql", _ROWS)

    story.give("sql", _QUESTION, because="Ask what is published")
    story.give("status", "--changed-since", cut, because="What changed since the cut")


def _newest_cut(folder: Path) -> str:
    with sealbook.open(folder, read_only=True) as book:
        return book.ledger.pointers.cuts()[-1].token


def _published_run(folder: Path) -> str:
    """Return the run that readers get of the partition that is about to be fetched again."""
    with sealbook.open(folder, read_only=True) as book:
        [found] = book.ledger.pointers.published(Selection(keys=[PartitionKey.parse(_KEY)]))
        return found.run_id


def _print_timings(story: _Story) -> None:
    from rich.text import Text

    from sealbook.cli.table import Column, print_table, stdout_console

    stdout_console().print(Text("\nWhere the time went", "bold"))
    columns: list[Column[tuple[str, float]]] = [
        Column("sealbook …", lambda each: each[0]),
        Column("seconds", lambda each: f"{each[1]:.1f}", number=True),
    ]
    (first, seconds), *others = story.taken
    print_table([(first, seconds), *_stages(story), *others], columns)
    message(f"The first grid was there after {story.first_grid:.1f} s.")


def _stages(story: _Story) -> Iterator[tuple[str, float]]:
    """Yield how long the stages of the first run took, by its log; the first of them waits for Spark."""
    with sealbook.open(story.folder, read_only=True) as book:
        snapshot = book.ledger.run_store.get_snapshot(str(story.first_run))
    for step in () if snapshot is None else snapshot.steps.values():
        latest = step.latest
        if latest.started_at is not None and latest.completed_at is not None:
            yield f"run: {step.step_id}", (latest.completed_at - latest.started_at).total_seconds()


def _say_next(folder: Path) -> None:
    message(f"\nThe book is in {folder}. Next: cd {shlex.quote(str(folder))}")
    for command, why in (
        (f"sealbook explain {_GIVEN_UP}", "why it was given up, and what would change that"),
        ("sealbook console", "all of it in a browser: see, ask, act"),
        ("sealbook status --attention", "all that somebody should look at, worst first"),
        ("sealbook coverage campaign_daily --kind failed", "what consumers do not get"),
        ("sealbook control serve", "the loop, until you stop it"),
        ("sealbook doctor", "whether all is well with the book and this machine"),
    ):
        message(f"  {command:<52} {why}")
