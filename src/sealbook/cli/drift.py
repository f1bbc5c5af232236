"""`sealbook drift`: how much days are restated, by query and by their age."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.model.drift import age_text
from sealbook.model.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sealbook.book import BookReader
    from sealbook.model.drift import DriftSum
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook drift
  sealbook drift --query campaign_daily --since 2026-01-01 --by customer
  sealbook drift --format json
"""


class By(StrEnum):
    """What sums are told apart by, besides query and age."""

    CUSTOMER = "customer"


@app.command(epilog=_EXAMPLES)
@selects()
def drift(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    by: Annotated[By | None, typer.Option("--by", help="Sum up each customer by itself.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show how much days changed when newer runs replaced published ones, by query and by the age of the day.

    The age is that at which the newer run was opened: 3d stands for days that were over for three days, and
    for less than the next age.
    """
    del ctx
    found = book.drift(selection, by_customer=by is By.CUSTOMER)
    if form is Format.JSON:
        show_json(each.to_dict() for each in found)
        return
    _print(found, by_customer=by is By.CUSTOMER)
    replaced, compared = (sum(getattr(each, name) for each in found) for name in ("replacements", "compared"))
    for name, learned in book.learned_due().items():
        message(f"{name} is due at {learned.text} (auto): {'; '.join(learned.reasons)}.")
    said = f"{counted(replaced, 'replacement')}"
    message(f"{said}; {replaced - compared:,} not compared." if replaced > compared else f"{said}.")


def _print(found: Sequence[DriftSum], *, by_customer: bool) -> None:
    from sealbook.cli.table import Column, print_table

    columns: list[Column[DriftSum]] = [Column("query", lambda each: f"{each.source}/{each.query_name}")]
    if by_customer:
        columns.append(Column("customer", lambda each: each.customer_id))
    columns += [
        Column("age", lambda each: age_text(each.age)),
        Column("replaced", lambda each: f"{each.replacements:,}", number=True),
        Column("unchanged", lambda each: _percent(each.share_unchanged), number=True),
        Column("rows", lambda each: f"{each.rows:,}", number=True, spare=2),
        Column("added", lambda each: f"{each.added:,}", number=True, spare=1),
        Column("removed", lambda each: f"{each.removed:,}", number=True, spare=1),
        Column("changed", lambda each: f"{each.changed:,}", number=True, spare=1),
        Column("change", lambda each: _percent(each.change if each.compared else None), number=True),
        Column("of columns", lambda each: _columns(each.columns), wraps=True),
    ]
    print_table(found, columns)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def _columns(changes: Mapping[str, float]) -> str:
    largest = sorted(changes.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {_percent(change)}" for name, change in largest)
