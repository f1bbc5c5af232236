"""Lines that break a rule: how many, which come first, and for what reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import nsmallest

from sealbook.model.verdict import MAX_LINES

JSON = "json"
"""The line is no JSON object."""
TYPES = "types"
"""The line has a value of the wrong type."""
REQUIRED = "required"
"""The row is null in a required column."""
EXTRA_COLUMNS = "extra_columns"
"""The line has columns that the contract has not."""

MAX_REASONS = 5


@dataclass(slots=True)
class OffendingLines:
    """A count of lines, the lowest `MAX_LINES` numbers, and why they offend: the first reasons in text order.

    However a payload is cut, and in whatever order its parts are merged, the result is the same.
    """

    count: int = 0
    lines: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def merge(self, other: OffendingLines, offset: int = 0) -> None:
        """Take in other lines, whose numbers begin `offset` lower than ours."""
        self.count += other.count
        if other.lines:
            self.lines = nsmallest(MAX_LINES, [*self.lines, *(line + offset for line in other.lines)])
        if other.reasons:
            self.reasons = nsmallest(MAX_REASONS, {*self.reasons, *other.reasons})
