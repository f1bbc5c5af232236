"""`sealbook control tick` and `serve`: the loop that works on what is due, once or until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import load_settings, open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_object
from sealbook.logs import VARIABLE, LogFormat, choose
from sealbook.model.work import Lane

if TYPE_CHECKING:
    from sealbook.control.loop import Ticked

PORT = 9464

_TICK_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control tick
  sealbook control tick --minutes 50 --format json
"""
_SERVE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control serve
  sealbook control serve --port 9500 --log json
"""


SourcesOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this source; may be given again.")
]
LanesOption = Annotated[list[Lane] | None, typer.Option(help="Only this lane; may be given again.")]
BatchOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Partitions that are claimed at once, at most.")
]
LogOption = Annotated[
    LogFormat, typer.Option("--log", envvar=VARIABLE, help="Lines for people, or JSON lines for programs.")
]


def add_commands(app: typer.Typer) -> None:
    """Add the commands to their group."""
    app.command(epilog=_TICK_EXAMPLES)(tick)
    app.command(epilog=_SERVE_EXAMPLES)(serve)


def tick(
    ctx: typer.Context,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Work on so many partitions at most.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", min=0.0, help="Begin nothing after so many minutes.")
    ] = None,
    source: SourcesOption = None,
    lane: LanesOption = None,
    batch: BatchOption = None,
    log: LogOption = LogFormat.TEXT,
    form: FormatOption = Format.TABLE,
) -> None:
    """Open work for what is due, work on what is ready, and end: for cron and Airflow.

    Any number of these may run at once, beside loops that serve: they share the work, and never collide.
    """
    ctx.obj.has_begun = True
    with open_book(ctx) as book:
        loop = book.loop(source, lane, batch=batch, tell=_journal(log))
        ticked = loop.tick(partitions=partitions, seconds=None if minutes is None else minutes * 60)
    if form is Format.JSON:
        show_object(_as_dict(ticked))
    else:
        _say(ticked)
    raise typer.Exit(_exit_code(ticked))


def serve(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Where health and metrics are; 0 is nowhere.")
    ] = PORT,
    source: SourcesOption = None,
    lane: LanesOption = None,
    batch: BatchOption = None,
    log: LogOption = LogFormat.TEXT,
) -> None:
    """Do the same again and again until SIGTERM or Ctrl-C, and answer for health and metrics meanwhile.

    Spark stays warm. A stop lets go of what was claimed: any loop goes on with it.
    """
    from contextlib import nullcontext
    from dataclasses import replace

    from sealbook.book import Book
    from sealbook.control.health import Health, answering

    ctx.obj.has_begun = True
    settings = load_settings(ctx)
    journal = _journal(log)
    with Book(replace(settings, spark=replace(settings.spark, for_command=False))) as book:
        loop = book.loop(source, lane, batch=batch, tell=journal)
        health = Health(journal, book.ledger.reader, settings)
        with answering(health, port) if port else nullcontext(0) as answered:
            journal("serving", holder=loop.holder, port=answered)
            loop.serve()


def _journal(log: LogFormat) -> Any:
    from sealbook.control.journal import Journal

    choose(log)
    return Journal(message)


def _as_dict(ticked: Ticked) -> dict[str, object]:
    """Return what a tick came to, for programs."""
    words = sorted({word for _, word in ticked.tally.endings})
    return {
        "opened": {lane.value: number for lane, number in ticked.round.opened.items()},
        "reopened": ticked.round.reopened,
        "batches": ticked.batches,
        "ended": ticked.ended,
        "next_at": ticked.next_at,
        "requests": ticked.tally.requests.total(),
        "results": {word: ticked.tally.count(word) for word in words},
    }


def _say(ticked: Ticked) -> None:
    words = ("published", "rejected", "failed", "not_judged", "lost")
    said = [f"{number:,} {word.replace('_', ' ')}" for word in words if (number := ticked.tally.count(word))]
    typer.echo(", ".join(said) or "nothing to do")
    if ticked.ended == "gated":
        message("What is ready has to wait: a budget is used up, or its scope is paused.")
    if ticked.next_at is not None:
        message(f"The next is ready at {ticked.next_at:%Y-%m-%d %H:%M:%S} UTC")


def _exit_code(ticked: Ticked) -> ExitCode:
    """Tell a tick in which something failed from one in which nothing did; what failed is tried again."""
    failed = any(ticked.tally.count(word) for word in ("failed", "rejected", "not_judged"))
    return ExitCode.DONE_IN_PART if failed else ExitCode.DONE
