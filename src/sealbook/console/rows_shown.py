"""What the console shows of the content of rows: all of it, all but some columns, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sealbook.config.console import MASK, ConsoleSettings
from sealbook.views.row_content import hides_values, without_values


@dataclass(frozen=True, slots=True)
class RowsShown:
    """Asked before any value of a row leaves the console, by each page that shows some.

    A masked column is written `column`, for every query, or `query.column`.
    """

    show_rows: bool = True
    masked_columns: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: ConsoleSettings) -> RowsShown:
        """Return what is configured."""
        return cls(settings.show_rows, settings.masked_columns)

    def is_masked(self, query_name: str, column: str) -> bool:
        """Tell whether the values of a column are not to be seen."""
        return column in self.masked_columns or f"{query_name}.{column}" in self.masked_columns

    def row(self, query_name: str, row: Mapping[str, object]) -> dict[str, object] | None:
        """Return a row as it may be shown; None if no row may."""
        if not self.show_rows:
            return None
        return {name: MASK if self.is_masked(query_name, name) else value for name, value in row.items()}

    def hidden_columns(self, query_name: str, columns: Iterable[str]) -> list[str]:
        """Return those of a query's columns that are masked."""
        return [column for column in columns if self.is_masked(query_name, column)]

    def without_quotes(self, content: Any) -> Any:
        """Return an answer as it may be shown: where values are hidden, errors say what failed, and no more.

        What a check found is told with the values that it found.
        """
        return _without_quotes(content) if hides_values(self) else content


def _without_quotes(content: Any) -> Any:
    match content:
        case dict():
            return {
                name: without_values(value)
                if name == "error" and isinstance(value, str)
                else _without_quotes(value)
                for name, value in content.items()
            }
        case list() | tuple():
            return [_without_quotes(each) for each in content]
    return content
