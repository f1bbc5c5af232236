"""`sealbook run`: the whole way of the data, as one run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.guards import ForceOption, YesOption, approve
from sealbook.cli.options import FormatOption, ResumedRunOption
from sealbook.cli.output import Format, message, show_object
from sealbook.cli.selecting import selects
from sealbook.cli.sending import send_lineage
from sealbook.model import RunStatus
from sealbook.model.partition_events import Stage
from sealbook.model.words import counted
from sealbook.stopping import uninterrupted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.extract.plan import ExtractPlan
    from sealbook.model import RunId
    from sealbook.model.selection import Selection
    from sealbook.views.reasons import Reason
    from sealbook.views.run_summary import NotPublished, RunSummary

app = typer.Typer()

_SHOWN = 10

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook run --day yesterday --lookback 3
  sealbook run --since 2026-01-01 --until 2026-01-31 --query campaign_daily
  sealbook run google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook run --since 2026-01-01 --until 2026-01-31 --run-id 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
"""


@app.command(epilog=_EXAMPLES)
@selects(writes=True, keys=True, lookback=True)
def run(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    run_id: ResumedRunOption = None,
    yes: YesOption = False,
    force: ForceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Extract, validate and load every partition of a span of days, as one run.

    To go on with a run that was stopped or killed, give the same command with --run-id.
    One partition's failure leaves the others alone.
    """
    plan = book.plan_run(selection)
    approve(plan, book.settings.sources, yes=yes, force=force)
    if run_id is not None and (ended := _ended(book, run_id)) is not None:
        message(f"Run {run_id} has ended already: {ended.status}")
        if form is Format.JSON:
            show_object(ended.to_dict())
        raise typer.Exit(ExitCode.DONE if ended.status is RunStatus.COMPLETED else ExitCode.FAILED)
    with uninterrupted():
        run = ctx.obj.run_id = run_id or book.pipeline.open_run()
    message(f"Run {run}: {_days(selection)}{counted(len(plan), 'partition')}")
    summary = run_stages(book, plan, run)
    if form is Format.JSON:
        show_object(summary.to_dict())
    else:
        print_summary(summary)
        _say_next(summary, ctx.obj.command_to_go_on())
    raise typer.Exit(exit_code(summary))


def run_stages(book: Book, plan: ExtractPlan, run_id: RunId) -> RunSummary:
    """Take what is planned the whole way under one display of progress, and sum up what came of it."""
    from sealbook.cli.progress import stages_progress
    from sealbook.views.run_summary import RunSummary

    store = book.ledger.reader.run_store
    summary = RunSummary.begin(store, run_id)
    with stages_progress() as on_stage, closing(book.pipeline.run(plan, run_id, on_stage)) as batches:
        for batch in batches:
            summary.add(batch)
    send_lineage(book)
    summary.read(store)
    return summary


def print_summary(summary: RunSummary) -> None:
    """Print what came of each stage, and what was not published, worst first, each reason once."""
    from sealbook.cli.reasons import few
    from sealbook.cli.table import cell

    for stage, counts in summary.counts.items():
        said = ", ".join(f"{count:,} {_words(ending)}" for ending, count in counts.items() if count)
        typer.echo(f"{stage:<10}{said or 'nothing to do'}")
    reasons = summary.reasons
    if not reasons:
        return
    typer.echo("not published")
    shown = [(_which(reason), f"{stage} {reason.ending}", reason) for stage, reason in reasons[:_SHOWN]]
    which_width = max(len(which) for which, _, _ in shown)
    ending_width = max(len(ending) for _, ending, _ in shown)
    for which, ending, reason in shown:
        said = cell(reason.text if reason.is_same else f"the first: {reason.text}")
        typer.echo(f"  {which:<{which_width}}  {ending:<{ending_width}}  {said}")
        if len(reason.keys) > 1:
            typer.echo(f"    {few(reason.keys)}")
    if left := reasons[_SHOWN:]:
        more = sum(len(reason.keys) for _, reason in left)
        typer.echo(f"  … and {more:,} more, for other reasons; --format json lists all")


def _which(reason: Reason) -> str:
    """Name the partition that has a reason, or say how many have."""
    return str(reason.keys[0]) if len(reason.keys) == 1 else counted(len(reason.keys), "partition")


def exit_code(summary: RunSummary) -> ExitCode:
    """Tell all, some and none published apart."""
    if not summary.not_published:
        return ExitCode.DONE
    return ExitCode.DONE_IN_PART if summary.published else ExitCode.FAILED


def _ended(book: Book, run_id: RunId) -> RunSummary | None:
    """Return what is known of a run that has ended; None of any other."""
    from sealbook.views.run_summary import RunSummary

    summary = RunSummary.begin(book.ledger.reader.run_store, run_id)
    return summary if summary.status.final else None


def _days(selection: Selection) -> str:
    if selection.since is None:
        return ""
    if selection.since == selection.until:
        return f"{selection.since}, "
    return f"{selection.since} … {selection.until}, "


def _words(ending: str) -> str:
    return {"loaded": "new", "not_judged": "not judged"}.get(ending, ending)


def _say_next(summary: RunSummary, command_to_go_on: str) -> None:
    from sealbook.cli.verdict_text import AGAIN

    if summary.not_published:
        message(f"next: {_next(summary, summary.worst_first[0], command_to_go_on)}")
    if any(each.ending == "rejected" for each in summary.not_published.values()):
        message(f"{AGAIN}, then: sealbook load")


def _next(summary: RunSummary, worst: NotPublished, command_to_go_on: str) -> str:
    """Return the command that shows why, or tries again."""
    if worst.ending == "rejected":
        return f"sealbook state history {worst.key}"
    if not summary.status.final:
        return command_to_go_on
    if worst.stage is Stage.LOAD:
        return "sealbook load"
    alike = [str(each.key) for each in summary.worst_first if each.stage is worst.stage]
    return f"sealbook run {' '.join(alike[:_SHOWN])}"
