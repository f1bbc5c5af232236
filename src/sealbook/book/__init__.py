"""A configured book: the side that works, and the side that only reads."""

from sealbook.book.book import Book
from sealbook.book.reader import BookReader

__all__ = ["Book", "BookReader"]
