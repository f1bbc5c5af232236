"""`sealbook warehouse gc` and `verify`: the upkeep of what is stored."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import open_book
from sealbook.cli.options import DryRunOption, FormatOption
from sealbook.cli.output import Format, flat, message, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.table import Column, print_table
from sealbook.model.spans import parse_span
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.selection import Selection
    from sealbook.warehouse.cleanup import Removed
    from sealbook.warehouse.verification import Mismatch

GC_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse gc --dry-run
  sealbook warehouse gc --retain 7d
"""
VERIFY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse verify
  sealbook warehouse verify --query campaign_daily --since 2026-01-01
"""


def gc(
    ctx: typer.Context,
    retain: Annotated[
        str, typer.Option(metavar="SPAN", help="Keep what was published within this span: 7d, 12h, 30m.")
    ] = "7d",
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Remove artifacts that no pointer, no cut and no retention needs, and orphans of crashed loads."""
    from sealbook.warehouse.cleanup import Cleanup
    from sealbook.warehouse.store import ArtifactStore

    span = parse_span("retain", retain)
    with open_book(ctx) as book:
        cleanup = Cleanup(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse), span)
        removed = list(cleanup.plan() if dry_run else cleanup.remove())
    columns: list[Column[Removed]] = [
        Column("partition", lambda each: each.key),
        Column("run", lambda each: each.run_id),
        Column("schema", lambda each: each.schema_version, spare=2),
        Column("orphan", lambda each: "yes" if each.orphan else "", spare=3),
        Column("files", lambda each: each.files, spare=4, number=True),
        Column("bytes", lambda each: each.bytes, spare=1, number=True),
    ]
    if form is Format.JSON:
        show_json(map(flat, removed))
    elif removed:
        print_table(removed, columns)
    done = "Would remove" if dry_run else "Removed"
    megabytes = sum(each.bytes for each in removed) / 1e6
    message(f"{done} {counted(len(removed), 'artifact')}, {megabytes:,.1f} MB")


@selects(keys=True)
def verify(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    form: FormatOption = Format.TABLE,
) -> None:
    """Re-read every artifact against its load record, and compare all states with all pointers.

    The exit code is 1 if there is any difference, and each is named with the way out. `sealbook load`
    resolves what changed since the last load, and `sealbook load --full` what no change was noted of;
    `sealbook load --rebuild` stages artifacts that are missing or damaged from their raw payloads.
    """
    from sealbook.cli.progress import partitions_progress
    from sealbook.warehouse.store import ArtifactStore
    from sealbook.warehouse.verification import Verification

    del ctx
    verification = Verification(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse))
    mismatches = list(verification.pointers(selection))
    artifacts = 0
    total = sum(1 for _ in book.ledger.pointers.stored_artifacts(selection))
    with partitions_progress("Verifying", total) as progress:
        for verified in verification.artifacts(selection):
            artifacts += 1
            mismatches += verified.mismatches
            record = verified.artifact.record
            progress.advance(1, rows=record.record_count, size=record.bytes)
    columns: list[Column[Mismatch]] = [
        Column("partition", lambda each: each.key),
        Column("run", lambda each: each.run_id, spare=1),
        Column("field", lambda each: each.field, style=lambda _: "red"),
        Column("expected", lambda each: each.expected, wraps=True),
        Column("found", lambda each: each.found, wraps=True),
        Column("way out", lambda each: each.remedy, spare=2),
    ]
    if form is Format.JSON:
        show_json(map(flat, mismatches))
    elif mismatches:
        print_table(mismatches, columns)
    message(f"Verified {counted(artifacts, 'artifact')}; differences: {len(mismatches):,}")
    for remedy, resolved in sorted(Counter(each.remedy for each in mismatches).items()):
        message(f"`{remedy}` resolves {resolved:,}")
    if mismatches:
        raise typer.Exit(ExitCode.FAILED)
