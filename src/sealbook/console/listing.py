"""Pages that list things: the filters of the address, a table of what they leave, and the page after it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sealbook.console.answers import Answer
from sealbook.console.page import Ask
from sealbook.errors import InvalidInput

Row = Mapping[str, Any]
PAGE = 50
MOST = 1_000


def partition_of(row: Row) -> str:
    """Return the key of a row that begins with the fields of one."""
    return "/".join(str(row[name]) for name in ("source", "customer_id", "query_name", "logical_date"))


class Column(NamedTuple):
    """A column: its title, what it shows of a row, and how: as text, code, time, number, badge, key …"""

    title: str
    shows: str | Callable[[Row], object]
    kind: str = "text"

    def value(self, row: Row) -> object:
        """Return what it shows of a row; a field that it lacks is none."""
        return row.get(self.shows) if isinstance(self.shows, str) else self.shows(row)


class Filter(NamedTuple):
    """A filter of the address: its name there, its label, and what it offers: words, a day, or any text.

    `option` is the command's for the same; it takes no value if it is a `check`.
    """

    name: str
    label: str
    option: str
    kind: str = "text"
    choices: Sequence[str] = ()


PARTITIONS = (
    Filter("source", "Source", "--source"),
    Filter("customer", "Customer", "--customer-id"),
    Filter("query", "Query", "--query-name"),
    Filter("since", "Since", "--since", "date"),
    Filter("until", "Until", "--until", "date"),
)
"""The filters that choose partitions, as the options of every command that does."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How a list is shown; `key` names the field of its last row from which the next page goes on."""

    title: str
    command: str
    columns: Sequence[Column]
    filters: Sequence[Filter] = ()
    key: str | None = None
    nothing: str = "There is none."
    about: str = ""
    cursor: str = "before"
    """The filter of the address, and the option of the command, that goes on behind a row."""

    def limit(self, ask: Ask) -> int:
        """Return how many rows a page has."""
        return ask.whole("limit", PAGE, most=MOST)

    def before(self, ask: Ask) -> int | None:
        """Return the number behind which the page goes on."""
        text = ask.one(self.cursor)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) < 2**63:
            raise InvalidInput.of(self.cursor, text, "the number of the last one of the page before")
        return int(text)

    def answer(self, ask: Ask, rows: Sequence[Row], **more: Any) -> Answer:
        """Return the page of some rows; there may be another if these are as many as were asked for."""
        is_paged = self.key is not None
        last = rows[-1][self.key] if self.key is not None and len(rows) == self.limit(ask) else None
        given = {each.name: ask.many(each.name) for each in self.filters}
        shown = {
            "listing": self,
            "given": {name: ", ".join(values) for name, values in given.items()},
            "after": last,
            "paged": is_paged,
            **more,
        }
        return Answer(rows, self._command(ask, given), shown)

    def _command(self, ask: Ask, given: Mapping[str, Sequence[str]]) -> str:
        words = shlex.split(self.command)
        for each in self.filters:
            if each.kind == "check":
                words += [each.option] if given[each.name] else []
            else:
                words += [word for value in given[each.name] for word in (each.option, value)]
        if self.key is not None:
            behind = ask.one(self.cursor)
            words += ["--limit", str(self.limit(ask)), *([f"--{self.cursor}", behind] if behind else [])]
        return shlex.join(words)
