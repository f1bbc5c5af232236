"""`sealbook state`: what is safe to consume, and how it came to be so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import (
    CustomerIdOption,
    FormatOption,
    KeyArgument,
    KeysArgument,
    LimitOption,
    QueryNameOption,
    SinceOption,
    SourceOption,
    StatusOption,
    UntilOption,
)
from sealbook.cli.output import Format, flat, message, show, show_json
from sealbook.model import PartitionState, Status
from sealbook.model.keys import check_customer_id

if TYPE_CHECKING:
    from sealbook.cli.table import Column
    from sealbook.ledger.states.reader import StateFilters

app = typer.Typer(help="What is safe to consume, and how it came to be so.", no_args_is_help=True)

STATUS_STYLES = {Status.SUCCESS: "green", Status.FAILED: "red", Status.PENDING: "yellow"}

_INSPECT_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state inspect
  sealbook state inspect google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook state inspect --status failed --since 2026-01-01 --until 2026-01-31
  sealbook state inspect --customer-id 1234567890 --format json
"""

_HISTORY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state history google_ads/1234567890/campaign_daily/2026-01-01
  sealbook state history google_ads/1234567890/campaign_daily/2026-01-01 --format json
"""


@app.command(epilog=_INSPECT_EXAMPLES)
def inspect(
    ctx: typer.Context,
    keys: KeysArgument = None,
    source: SourceOption = None,
    customer_id: CustomerIdOption = None,
    query_name: QueryNameOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    status: StatusOption = None,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List partitions with their status and current run.

    Give keys, or filters, or neither.
    A partition that nobody has judged is pending, and shown when asked for by key.
    """
    filters: StateFilters = {
        "source": source,
        "customer_id": customer_id,
        "query_name": query_name,
        "since": since,
        "until": until,
        "status": status,
    }
    if keys and any(value is not None for value in filters.values()):
        raise typer.BadParameter("give keys or filters, not both")
    if source and customer_id:
        check_customer_id(source, customer_id)
    if since and until and since > until:
        raise typer.BadParameter(f"since {since} is after until {until}")
    with open_book(ctx) as book:
        states = map(book.ledger.state, keys) if keys else book.ledger.states(**filters)
        shown: Counter[Status] = Counter()
        show(_counted(islice(states, limit), shown), _state_columns(form), form)
        _summarise(shown)
        if not keys and shown.total() == limit:
            message(f"--limit: these are the first of {sum(book.ledger.status_counts(**filters).values())}")


@app.command(epilog=_HISTORY_EXAMPLES)
def history(ctx: typer.Context, key: KeyArgument, form: FormatOption = Format.TABLE) -> None:
    """Show every judgement of a partition, oldest first, with its evidence."""
    with open_book(ctx) as book:
        attempts = book.ledger.attempts(key)
        state = book.ledger.state(key)
    if form is Format.JSON:
        show_json(map(flat, attempts))
    else:
        from sealbook.cli.evidence import print_attempts

        print_attempts(attempts)
    current = f", current run {state.current_run_id}" if state.current_run_id else ""
    message(f"{key} is {state.status}{current}; attempts: {state.attempt_count}")


def _state_columns(form: Format) -> list[Column[PartitionState]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("partition", lambda state: state.key),
        Column("status", lambda state: state.status, style=lambda state: STATUS_STYLES[state.status]),
        Column("attempts", lambda state: state.attempt_count, spare=1, number=True),
        Column("records", lambda state: state.record_count, spare=4, number=True),
        Column("schema", lambda state: state.schema_version, spare=5),
        Column("current run", lambda state: state.current_run_id, spare=2),
        Column("updated (UTC)", lambda state: state.updated_at, spare=3),
        Column("error", lambda state: state.error_message, style=lambda _: "red", wraps=True),
    ]


def _counted(states: Iterable[PartitionState], counts: Counter[Status]) -> Iterator[PartitionState]:
    for state in states:
        counts[state.status] += 1
        yield state


def _summarise(counts: Counter[Status]) -> None:
    from rich.text import Text

    total = counts.total()
    line = Text(f"{total} partition{'' if total == 1 else 's'}")
    for index, (status, style) in enumerate(STATUS_STYLES.items()):
        line.append(": " if index == 0 else ", ")
        line.append(f"{counts[status]} {status}", style if counts[status] else "dim")
    message(line)
