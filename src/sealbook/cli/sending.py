"""What a command sends out once it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealbook.cli.output import message

if TYPE_CHECKING:
    from sealbook.book import Book


def send_lineage(book: Book) -> None:
    """Send lineage of what was just done, if it is configured; what goes wrong is said, and fails nothing."""
    book.lineage_telling(lambda error: message(f"Lineage was not sent: {error}"))()
