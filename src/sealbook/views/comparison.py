"""Two runs of a partition side by side, with no more of their rows than may be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sealbook.errors import NotFound, Permanent
from sealbook.model import PartitionKey
from sealbook.model.run_diff import ColumnDiff, NotCompared, RowChange, RunDiff
from sealbook.model.selection import Selection
from sealbook.views.row_content import RowRules

if TYPE_CHECKING:
    from sealbook.book import BookReader


def compare_runs(
    book: BookReader,
    key: PartitionKey,
    before: str | None = None,
    after: str | None = None,
    *,
    limit: int = 10,
    rules: RowRules | None = None,
) -> RunDiff:
    """Compare two runs of a partition, those that `sealbook diff` chooses unless they are named.

    NotFound if it has no two runs; Permanent if they cannot be read.
    """
    [found] = check_compared(book.diff(Selection(keys=[key]), before, after, limit=limit))
    return found if rules is None else _masked(found, rules)


def check_compared(found: Iterable[RunDiff | NotCompared]) -> list[RunDiff]:
    """Return what was compared; fail where a partition that was asked for was not."""
    compared = []
    for each in found:
        if isinstance(each, NotCompared):
            kind = Permanent if each.failed else NotFound
            raise kind(
                f"{each.key}: {each.why}", remedy=f"`sealbook raw list {each.key}` lists its sealed runs."
            )
        compared.append(each)
    return compared


def _masked(found: RunDiff, rules: RowRules) -> RunDiff:
    """Return a comparison without the values that may not be seen: counts stay, totals of such columns go."""
    name = found.key.query_name

    def is_hidden(column: str) -> bool:
        shown = rules.row(name, {column: None})
        return shown is None or shown[column] is not None

    def column(diff: ColumnDiff) -> ColumnDiff:
        return replace(diff, total_before=None, total_after=None) if is_hidden(diff.name) else diff

    def values(row: Mapping[str, object] | None) -> Mapping[str, object] | None:
        return None if row is None else rules.row(name, row)

    def change(each: RowChange) -> RowChange:
        key = rules.row(name, each.primary_key) or {}
        return replace(each, primary_key=key, before=values(each.before), after=values(each.after))

    sample = tuple(map(change, found.rows.sample)) if rules.show_rows else ()
    rows = replace(found.rows, columns=tuple(map(column, found.rows.columns)), sample=sample)
    return replace(found, rows=rows)
