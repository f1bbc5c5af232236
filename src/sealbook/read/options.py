"""The options of Sealbook's Spark data sources: which partitions of which book.

They show in query plans and logs, so none is secret: a book is named by its path, and the URL of its ledger
comes from its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sealbook.errors import InvalidInput, SealbookError
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from sealbook.config import Settings
    from sealbook.model.contract import Query

_SHARED = ("book", "query", "source", "customers", "since", "until")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class BookOptions:
    """What all sources are asked alike. Names of options are the same in any case."""

    book: str | None
    query: str
    source: str | None
    selection: Selection
    further: Mapping[str, str]
    """The options that one source alone has, by their names in lower case."""

    @classmethod
    def of(cls, options: Mapping[str, str], *further: str) -> BookOptions:
        """Read options; InvalidInput for one that is neither shared nor among these further ones."""
        given = {name.lower(): value for name, value in options.items()}
        names = (*_SHARED, *further)
        unknown = sorted(given.keys() - {name.lower() for name in names})
        if unknown:
            raise InvalidInput.of("option", unknown[0], f"one of {', '.join(names)}")
        if "query" not in given:
            raise InvalidInput.of("option query", None, "the name of a query")
        customers = given.get("customers")
        selection = Selection(
            customers=None if customers is None else [each.strip() for each in customers.split(",")],
            since=given.get("since"),
            until=given.get("until"),
        )
        own = {name: value for name, value in given.items() if name not in _SHARED}
        return cls(given.get("book"), given["query"], given.get("source"), selection, own)

    def flag(self, name: str) -> bool:
        """Return a further option that is true or false; false where it is not given."""
        text = self.further.get(name.lower(), "false").lower()
        if text not in _TRUTH:
            raise InvalidInput.of(f"option {name}", text, "true or false")
        return _TRUTH[text]

    def number(self, name: str) -> int | None:
        """Return a further option that is a number from 1 on; None where it is not given."""
        text = self.further.get(name.lower())
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise InvalidInput.of(f"option {name}", text, "a number from 1 on")
        return int(text)

    def find(self) -> tuple[Settings, Query]:
        """Read the configuration; return it, and the query."""
        from sealbook.config import find_query, load_settings  # not for tasks, which import this module too

        settings = load_settings(self.book)
        return settings, find_query(settings.sources, self.query, self.source)


@contextmanager
def remedies_told() -> Iterator[None]:
    """Put the remedy of an error into its traceback, which is all that Spark passes on."""
    try:
        yield
    except SealbookError as error:
        if error.remedy is not None:
            error.add_note(error.remedy)
        raise
