"""What the pages of one console share: the book, who may act on it, what is shown of rows, what is live."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sealbook.clock import utc_now
from sealbook.console.answers import Answer, Answers, Gathered
from sealbook.console.live import Live
from sealbook.console.positions import Positions
from sealbook.console.rehearsals import Rehearsals, rehearsal_command
from sealbook.console.rows_shown import RowsShown
from sealbook.errors import Forbidden

if TYPE_CHECKING:
    from sealbook.book import Book, BookReader
    from sealbook.console.security.people import Person


class Console:
    """A book on the web. `book` cannot write; who may act asks for the one that can.

    `open_book` is None where nobody may act. Nothing is opened to act before somebody does.
    """

    def __init__(
        self,
        book: BookReader,
        open_book: Callable[[], Book] | None = None,
        rehearsals: Rehearsals | None = None,
    ) -> None:
        self.book = book
        self.settings = book.settings.console
        self.rows = RowsShown.of(self.settings)
        self.answers = Answers()
        self.positions = Positions(book.ledger.position)
        self.live = Live(self.positions, book.ledger.run_store)
        self.rehearsals = rehearsals or Rehearsals(rehearsal_command(book.settings))
        self._open_book = open_book
        self._lock = threading.Lock()
        self._opened: Book | None = None
        self._closing = ExitStack()
        self._closing.callback(self.rehearsals.close)

    @property
    def read_only(self) -> bool:
        """Whether nobody may act, whatever their role."""
        return self._open_book is None

    def check_may_act(self, person: Person) -> None:
        """Refuse who may not act here: Forbidden."""
        person.check_may_act()
        if self.read_only:
            raise Forbidden("this console is read-only", remedy="Start it without --read-only.")

    def book_to_act_on(self, person: Person) -> Book:
        """Return the book for somebody who may act on it; Forbidden for who may not.

        Call `acted` when something was done, so that the next page shows it.
        """
        self.check_may_act(person)
        assert self._open_book is not None  # it was just asked
        with self._lock:
            if self._opened is None:
                self._opened = self._closing.enter_context(self._open_book())
            return self._opened

    def gathered(self, name: str, gather: Callable[[], Answer], *, lasts: int) -> Gathered:
        """Return the answer of a name: gathered once until something moves, or so many seconds are over."""
        stamp = f"{self.positions.now()}-{int(utc_now().timestamp()) // lasts}-{self.rehearsals.changes}"
        return self.answers.get(name, stamp, gather)

    def acted(self) -> None:
        """Have the next page read the ledger again, and not what was known of it before."""
        self.positions.forget()

    def close(self) -> None:
        """Close what was opened to act on, and end what is rehearsed; not the book that was handed in."""
        self._closing.close()
