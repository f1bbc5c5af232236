"""Rows as people may see them: lines of a sealed payload, whole, masked in part, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from sealbook.errors import SealbookError
from sealbook.model import PartitionKey, RunId

if TYPE_CHECKING:
    from sealbook.raw import RawReader

_WITHIN = 32 * 2**20
"""How many bytes of a payload are looked through for a line, so that a page does not read gigabytes."""
_LONGEST = 2_000
"""How many characters of a line are shown."""


class RowRules(Protocol):
    """What of rows may be seen by whoever looks: all but some columns, or nothing."""

    @property
    def show_rows(self) -> bool:
        """Whether any row may."""

    @property
    def masked_columns(self) -> Collection[str]:
        """Which columns may not: each `column`, or `query.column`."""

    def row(self, query_name: str, row: Mapping[str, object]) -> dict[str, object] | None:
        """Return a row as it may be seen; None if it may not."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of a payload: its text, or why that is not shown."""

    line: int
    text: str | None
    withheld: str | None = None


def read_lines(
    raw: RawReader, key: PartitionKey, run_id: RunId, numbers: Collection[int], rules: RowRules | None = None
) -> dict[int, ShownLine]:
    """Return lines of a sealed run by their numbers, each with its text or why that is not shown."""
    if rules is not None and not rules.show_rows:
        return {number: ShownLine(number, None, "row content is switched off") for number in numbers}
    try:
        found = dict(raw.read(key, run_id).lines_at(numbers, within=_WITHIN)) if numbers else {}
    except SealbookError as error:
        return {number: ShownLine(number, None, str(error)) for number in numbers}
    far = f"it is not in the first {_WITHIN // 2**20} MB: `sealbook raw show --lines` reads it"
    return {
        number: _shown(number, _text(key.query_name, found[number], rules))
        if number in found
        else ShownLine(number, None, far)
        for number in numbers
    }


def _text(query_name: str, line: bytes, rules: RowRules | None) -> str | None:
    """Return a line as it may be seen; None if nobody can say where in it the masked values are."""
    if rules is None or not rules.masked_columns:
        return line.decode("utf-8", "backslashreplace")
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.json.encode(rules.row(query_name, row)).decode()


def _shown(number: int, text: str | None) -> ShownLine:
    if text is None:
        return ShownLine(number, None, "it is no JSON object, and columns are masked")
    if len(text) > _LONGEST:
        return ShownLine(number, text[:_LONGEST], f"{len(text) - _LONGEST:,} more characters")
    return ShownLine(number, text)


def hides_values(rules: RowRules | None) -> bool:
    """Tell whether any value of a row is kept from whoever looks."""
    return rules is not None and (not rules.show_rows or bool(rules.masked_columns))


def without_values(detail: str) -> str:
    """Return what a check says without the values that it quotes, which come last."""
    return detail.partition(": ")[0]
