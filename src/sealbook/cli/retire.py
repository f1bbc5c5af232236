"""`sealbook events retire`: old runs go from the ledger to the archive, by hand or by a cron job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import ActorOption, FormatOption, user_name
from sealbook.cli.output import Format, message, show_json
from sealbook.errors import ConfigError
from sealbook.model.spans import parse_span
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.status.retention import RetiredTo

RETIRE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook events retire --dry-run
  sealbook events retire
  sealbook events retire --older-than 90d --format json
"""


def retire(
    ctx: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Runs quiet for so long: 90d. Default: `retention.events`."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be retired.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept.")] = "retention",
    actor: ActorOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Move the events of runs that ended long ago from the ledger to the archive, as Parquet files.

    Each run is written, read back, and only then removed from the log.
    The command may be stopped at any time, and repeated.
    """
    from sealbook.cli.progress import events_progress
    from sealbook.status.archive import RunArchive
    from sealbook.status.retention import Retirement, retire_runs

    who = actor or user_name()
    with open_book(ctx) as book:
        retention, store = book.settings.retention, book.ledger.run_store
        age = _age(older_than, retention.events)
        due = sum(quiet.events for quiet in store.quiet_runs(age))
        runs: list[RetiredTo] = []
        looked_at = 0
        with events_progress("Retiring", due) as show_progress:
            for each in retire_runs(
                store, RunArchive(retention.archive), age, actor=who, reason=reason, dry_run=dry_run
            ):
                runs.append(each)
                looked_at += each.events
                show_progress(looked_at)
    counts = Counter(each.became for each in runs)
    if form is Format.JSON:
        show_json(map(asdict, runs))
    elif runs:
        _print_retired(runs)
    done, said = (Retirement.DUE, "Would retire") if dry_run else (Retirement.RETIRED, "Retired")
    events = sum(each.events for each in runs if each.became is done)
    left = {Retirement.OPEN: "not ended", Retirement.MOVED: "moved on meanwhile"}
    others = "".join(f"; {why}: {counts[which]:,}" for which, why in left.items() if counts[which])
    message(f"{said} {counted(counts[done], 'run')}, {events:,} events{others}")


def _age(given: str | None, configured: timedelta | None) -> timedelta:
    if given is not None:
        return parse_span("older-than", given)
    if configured is None:
        raise ConfigError(
            "no retention is configured: the log keeps every run",
            remedy="Set `retention.events` in sealbook.yaml, such as 400d, or give --older-than.",
        )
    return configured


def _print_retired(runs: Sequence[RetiredTo]) -> None:
    from sealbook.cli.table import Column, print_table

    columns: list[Column[RetiredTo]] = [
        Column("run", lambda each: each.run_id),
        Column("status", lambda each: each.status, spare=1),
        Column("last event (UTC)", lambda each: each.last_event_at, spare=2),
        Column("events", lambda each: each.events, number=True),
        Column("became", lambda each: each.became),
        Column("file", lambda each: each.file, spare=3, wraps=True),
    ]
    print_table(runs, columns)
