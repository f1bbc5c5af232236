"""`sealbook raw`: what is sealed, what is in it, and what was left over."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import (
    DryRunOption,
    FormatOption,
    KeyArgument,
    LimitOption,
    RunIdOption,
)
from sealbook.cli.output import Format, flat, message, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.table import Column, cell, print_table
from sealbook.errors import InvalidInput, NotFound
from sealbook.model.keys import AHEAD_REMEDY, is_ahead, why_ahead
from sealbook.model.spans import parse_span
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.selection import Selection
    from sealbook.raw import Leftover, RawMetadata

app = typer.Typer(help="What is sealed, and what is in it.", no_args_is_help=True)

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook raw list --since 2026-01-01
  sealbook raw list --customer 123-456-7890 --query campaign_daily --format json
"""

_GC_EXAMPLES = """
[bold]Examples[/bold]
  sealbook raw gc --dry-run
  sealbook raw gc --older-than 30d --customer 123-456-7890
"""

_SHOW_EXAMPLES = """
[bold]Examples[/bold]
  sealbook raw show google_ads/1234567890/campaign_daily/2026-01-01
  sealbook raw show google_ads/1234567890/campaign_daily/2026-01-01 --rows 50 --format json
  sealbook raw show google_ads/1234567890/campaign_daily/2026-01-01 --lines 21,22
"""


@app.command("list", epilog=_LIST_EXAMPLES)
@selects(keys=True, runs=True)
def list_(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the sealed runs of partitions, with what their seals say."""
    del ctx
    runs = list(islice(book.raw.sealed(selection), limit))
    seals = (book.raw.metadata(each.key, each.run_id) for each in runs)
    if form is Format.JSON:
        show_json(map(_fields, seals))
    else:
        _print_seals(seals)
    horizon = book.ledger.run_horizon() if runs else None
    for each in runs:
        if horizon is not None and is_ahead(each.run_id, horizon):
            message(f"{each.key}: {why_ahead(each.run_id)}. It is set aside. {AHEAD_REMEDY}")


@app.command("gc", epilog=_GC_EXAMPLES)
@selects(keys=True, runs=True)
def gc(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    age: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="SPAN", help="Only what is older than this span: 7d; at least 2d."
        ),
    ] = "7d",
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Remove payloads that no seal names: what writers that died or lost a race left behind."""
    from sealbook.raw import RawStore

    del ctx
    store = RawStore.open(book.settings.raw)
    leftovers = list(store.leftovers(selection, age=parse_span("older-than", age)))
    if not dry_run:
        store.remove(leftovers)
    if form is Format.JSON:
        show_json(map(flat, leftovers))
    elif leftovers:
        _print_leftovers(leftovers)
    done = "Would remove" if dry_run else "Removed"
    megabytes = sum(each.bytes for each in leftovers) / 1e6
    message(f"{done} {counted(len(leftovers), 'file')}, {megabytes:,.1f} MB")


@app.command("show", epilog=_SHOW_EXAMPLES)
def show_(
    ctx: typer.Context,
    key: KeyArgument,
    run_id: RunIdOption = None,
    rows: Annotated[int, typer.Option(metavar="N", min=0, help="How many rows to show.")] = 10,
    listed: Annotated[
        str | None,
        typer.Option(
            "--lines",
            metavar="N,N,…",
            help="Show these lines of the payload instead, by their numbers from 1.",
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what a partition's seal says, and its first rows; of its newest run, or of --run-id."""
    numbers = None if listed is None else _line_numbers(listed)
    with open_book(ctx) as book:
        runs = book.raw.runs(key)
        if not runs:
            raise NotFound(f"{key} has no sealed run", remedy="`sealbook raw list` shows what is sealed.")
        partition = book.raw.read(key, run_id or runs[-1])
        lines = dict(partition.lines_at(numbers or range(1, rows + 1)))
    if form is Format.JSON:
        told = {} if numbers is None else {"lines": list(lines)}
        show_json([{**_fields(partition.metadata), **told, "rows": list(map(_row, lines.values()))}])
        return
    for name, value in _fields(partition.metadata).items():
        typer.echo(f"{name:<16}{'' if value is None else value}")
    typer.echo()
    for number, line in lines.items():
        label = "" if numbers is None else f"line {number}: "
        typer.echo(label + cell(line.decode("utf-8", "backslashreplace")))
    others = [str(run) for run in runs if run != partition.metadata.run_id]
    if others:
        message(f"Other sealed runs: {', '.join(others)}")


def _line_numbers(text: str) -> tuple[int, ...]:
    numbers = [int(each) if each.isascii() and each.isdigit() else 0 for each in text.split(",")]
    if not all(numbers):
        raise InvalidInput.of("lines", text, "numbers from 1, with commas between them")
    return tuple(sorted(set(numbers)))


def _print_seals(seals: Iterable[RawMetadata]) -> None:
    columns: list[Column[RawMetadata]] = [
        Column("partition", lambda seal: seal.key),
        Column("run", lambda seal: seal.run_id),
        Column("records", lambda seal: seal.record_count, number=True),
        Column("bytes", lambda seal: seal.payload_bytes, spare=2, number=True),
        Column("schema", lambda seal: seal.schema_version, spare=3),
        Column("extracted (UTC)", lambda seal: seal.extracted_at, spare=1),
    ]
    print_table(seals, columns)


def _print_leftovers(leftovers: Iterable[Leftover]) -> None:
    columns: list[Column[Leftover]] = [
        Column("partition", lambda each: each.key),
        Column("run", lambda each: each.run_id, spare=2),
        Column("file", lambda each: each.path.rpartition("/")[2]),
        Column("bytes", lambda each: each.bytes, spare=1, number=True),
        Column("modified (UTC)", lambda each: each.modified, spare=3),
    ]
    print_table(leftovers, columns)


def _fields(seal: RawMetadata) -> dict[str, object]:
    """Return what a seal says, by the names of `metadata.json`."""
    fields: dict[str, object] = msgspec.json.decode(seal.to_json())
    return fields


def _row(line: bytes) -> object:
    """Return a row as the object that it is, or as text where it is none."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line.decode("utf-8", "backslashreplace")
