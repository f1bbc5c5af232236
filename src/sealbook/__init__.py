"""Sealbook: which slice of a pipeline is safe to consume, and which run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from sealbook.book import Book

__all__ = ["__version__", "open"]

__version__ = "0.1.0"


def open(path: str | PathLike[str] | None = None) -> Book:  # noqa: A001 - read as sealbook.open
    """Open the book of a `sealbook.yaml` or of the folder it is in; by default search upwards from here."""
    from sealbook.book import Book
    from sealbook.config import load_settings

    return Book(load_settings(path))
