"""`sealbook audit`: who did what by hand, when, why, and to which partitions (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.errors import InvalidInput

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.ledger.states.audit import Action, Override
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook audit
  sealbook audit --actor ann --action rollback --action cancel
  sealbook audit google_ads/1234567890/campaign_daily/2026-01-01
  sealbook audit --from 2026-01-01 --to 2026-02-01 --format json
"""
_TIME = "a day or a time in UTC, such as 2026-01-31 or 2026-01-31T06:00"


@app.command(epilog=_EXAMPLES)
@selects(keys=True)
def audit(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    actions: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="NAME", help="Only this action; may be given again."),
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this one did.")] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help=f"Only what was done from then on: {_TIME}.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help=f"Only what was done before: {_TIME}.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most so many.")] = 100,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the log of overrides, the latest first: what was done by hand or by policy, by whom, and why.

    Keys and filters choose what was done to any of those partitions, or to a scope that has them.
    """
    del ctx
    entries = book.ledger.override_log.entries(
        selection,
        actions=None if actions is None else [_action(each) for each in actions],
        actor=actor,
        since=None if begin is None else _time("from", begin),
        until=None if end is None else _time("to", end),
    )
    shown = list(islice(entries, limit))
    if form is Format.JSON:
        show_json(map(_as_dict, shown))
    else:
        from sealbook.cli.table import print_table

        print_table(shown, _columns())
    if not shown:
        message("Nothing of the kind was done.")
    elif len(shown) == limit:
        message(f"--limit: these are the latest {limit:,}; there may be more")


def _action(text: str) -> Action:
    from sealbook.ledger.states.audit import Action

    if text not in list(Action):
        raise InvalidInput.of("action", text, f"one of {', '.join(Action)}")
    return Action(text)


def _time(field: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput.of(field, text, _TIME) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _as_dict(entry: Override) -> dict[str, object]:
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "reason": entry.reason,
        "filter": entry.filter,
        "run_id": entry.run_id,
        "partitions": [str(key) for key in entry.keys],
    }


def _columns() -> list[Column[Override]]:
    from sealbook.cli.table import Column

    return [
        Column("when (UTC)", lambda each: each.at),
        Column("who", lambda each: each.actor),
        Column("action", lambda each: each.action),
        Column("what", lambda each: "; ".join(_what(each)), wraps=True),
        Column("partitions", lambda each: f"{len(each.keys):,}", number=True, spare=1),
        Column("why", lambda each: each.reason, wraps=True),
    ]


def _what(entry: Override) -> Iterator[str]:
    """Say what something was done to: a scope, a plan, a run, and the partition if it is one."""
    chosen_by = entry.filter or {}
    if "scope" in chosen_by:
        yield str(chosen_by["scope"])
    if chosen_by.get("plan") is not None:
        name = chosen_by.get("name")
        yield f"plan {chosen_by['plan']}" + ("" if name is None else f" ({name})")
    if len(entry.keys) == 1:
        yield str(entry.keys[0])
    if entry.run_id is not None:
        yield f"run {entry.run_id}"
