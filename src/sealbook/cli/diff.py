"""`sealbook diff`: how two runs of a partition differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.options import KEY_FORM, FormatOption, parsed_by
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.run_diff import NotCompared, RowChangeKind, RunDiff
from sealbook.model.words import counted
from sealbook.views.choosing import parse_key
from sealbook.views.comparison import check_compared
from sealbook.views.encoding import encode

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.run_diff import ColumnDiff, ComparedRun, Number, RowChange
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook diff google_ads/1234567890/campaign_daily/2026-01-01
  sealbook diff google_ads/1234567890/campaign_daily/2026-01-01 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --limit 100
  sealbook diff --query campaign_daily --day yesterday --format json
"""
_STYLES = {RowChangeKind.CHANGED: "yellow", RowChangeKind.REMOVED: "red", RowChangeKind.ADDED: "green"}


@app.command(epilog=_EXAMPLES)
@selects()
def diff(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    key: Annotated[
        PartitionKey | None,
        typer.Argument(metavar="[KEY]", help=f"A partition, as {KEY_FORM}.", parser=parsed_by(parse_key)),
    ] = None,
    before: Annotated[
        RunId | None,
        typer.Argument(
            metavar="[RUN_A]", help="The run before; else the published.", parser=parsed_by(RunId)
        ),
    ] = None,
    after: Annotated[
        RunId | None,
        typer.Argument(
            metavar="[RUN_B]", help="The run after; else the newest that is sealed.", parser=parsed_by(RunId)
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="Show so many rows of each kind.")] = 10,
    form: FormatOption = Format.TABLE,
) -> None:
    """Compare two runs of a partition, also of rejected ones: rows by primary key, and totals of columns.

    Without runs, the newest that is sealed is compared with the published one; if that is the newest, with
    the one that was published before it. Of many partitions, each is a line.
    """
    del ctx
    if key is not None:
        selection = replace(selection, keys=(key,))
    elif selection.is_everything:
        raise InvalidInput(
            "nothing is chosen", field="KEY", remedy="Give a key, or options such as --query and --day."
        )
    found = book.diff(selection, before, after, limit=limit)
    if key is not None:
        check_compared(found)
    if form is Format.JSON:
        show_json(each.to_dict() for each in found)
    elif key is not None:
        _print(found)
    else:
        _print_many(found)
    if any(isinstance(each, NotCompared) and each.failed for each in found):
        raise typer.Exit(ExitCode.DONE_IN_PART)


def _print(found: Sequence[RunDiff | NotCompared]) -> None:
    from rich.text import Text

    from sealbook.cli.table import Column, print_table, stdout_console

    [one] = (each for each in found if isinstance(each, RunDiff))
    console, rows = stdout_console(), one.rows
    console.print(Text(str(one.key), "bold"))
    for name, run in (("before", one.before), ("after", one.after)):
        console.print(Text(f"{name:<7} {_run(run)}"), soft_wrap=True)
    by = (
        f"matched by {', '.join(rows.primary_key)}"
        if rows.primary_key
        else "matched as a whole: no primary key"
    )
    numbers = {kind: getattr(rows, kind) for kind in ("added", "removed", "changed", "unchanged")}
    counts = ", ".join(f"{number:,} {kind}" for kind, number in numbers.items())
    console.print(Text(f"rows    {counts} ({by})"), soft_wrap=True)
    for said, names in (
        ("only before", one.only_before),
        ("only after", one.only_after),
        ("not comparable", one.incomparable),
    ):
        if names:
            console.print(Text(f"columns {said}: {', '.join(names)}"), soft_wrap=True)
    differing = [each for each in rows.columns if each.differs]
    if differing:
        console.print()
        columns: list[Column[ColumnDiff]] = [
            Column("column", lambda each: each.name),
            Column("changed", lambda each: f"{each.changed:,}", number=True),
            Column("nulls before", lambda each: f"{each.nulls_before:,}", number=True, spare=2),
            Column("after", lambda each: f"{each.nulls_after:,}", number=True, spare=2),
            Column("total before", lambda each: _number(each.total_before), number=True, spare=1),
            Column("total after", lambda each: _number(each.total_after), number=True, spare=1),
            Column("difference", lambda each: _number(each.difference), number=True),
        ]
        print_table(differing, columns)
    if rows.sample:
        console.print()
        shown: list[Column[RowChange]] = [
            Column("row", lambda each: each.kind, style=lambda each: _STYLES[each.kind]),
            Column("key", lambda each: _members(each.primary_key)),
            Column("values", _values, wraps=True),
        ]
        print_table(rows.sample, shown)
    left_out = rows.added + rows.removed + rows.changed - len(rows.sample)
    if left_out:
        message(f"{counted(left_out, 'row')} more; --limit shows more.")


def _run(run: ComparedRun) -> str:
    read = f"{counted(run.rows, 'row')} of its {run.rows_from}"
    if run.unreadable_lines:
        read += f", and {counted(run.unreadable_lines, 'line')} that cannot be read as such"
    return f"{run.run_id}  schema_version {run.schema_version}, {read}"


def _print_many(found: Sequence[RunDiff | NotCompared]) -> None:
    from sealbook.cli.table import Column, print_table

    diffs = [each for each in found if isinstance(each, RunDiff)]
    columns: list[Column[RunDiff]] = [
        Column("partition", lambda each: each.key),
        Column("before", lambda each: each.before.run_id, spare=2),
        Column("after", lambda each: each.after.run_id, spare=1),
        Column("rows", lambda each: f"{each.after.rows:,}", number=True),
        Column("added", lambda each: f"{each.rows.added:,}", number=True),
        Column("removed", lambda each: f"{each.rows.removed:,}", number=True),
        Column("changed", lambda each: f"{each.rows.changed:,}", number=True),
    ]
    print_table((each for each in diffs if not each.is_same), columns)
    same = sum(each.is_same for each in diffs)
    others = [each for each in found if isinstance(each, NotCompared)]
    for each in others:
        if each.failed:
            message(f"{each.key} cannot be compared: {each.why}")
    idle = sum(not each.failed for each in others)
    said = f"{counted(len(diffs), 'partition')} compared, {same:,} the same"
    message(f"{said}; {idle:,} with nothing to compare." if idle else f"{said}.")


def _values(change: RowChange) -> str:
    if change.before is not None and change.after is not None:
        after = change.after
        return ", ".join(
            f"{name} {_value(was)} → {_value(after[name])}" for name, was in change.before.items()
        )
    whole = change.before or change.after or {}
    return _members({name: each for name, each in whole.items() if name not in change.primary_key})


def _members(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_value(each)}" for name, each in values.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode().strip('"')


def _number(number: Number | None) -> str:
    if number is None:
        return ""
    return f"{number:,.4f}".rstrip("0").rstrip(".") if isinstance(number, float) else f"{number:,}"
