"""Sealbook: which slice of a pipeline is safe to consume, and which run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from os import PathLike

    from sealbook.book import Book, BookReader
    from sealbook.model.selection import Selection

__all__ = ["Selection", "__version__", "open"]

__version__ = "0.1.0"


@overload
def open(path: str | PathLike[str] | None = None, *, read_only: Literal[False] = False) -> Book: ...  # noqa: A001
@overload
def open(path: str | PathLike[str] | None = None, *, read_only: Literal[True]) -> BookReader: ...  # noqa: A001
def open(path: str | PathLike[str] | None = None, *, read_only: bool = False) -> Book | BookReader:  # noqa: A001 - read as sealbook.open
    """Open the book of a `sealbook.yaml` or of the folder it is in; by default search upwards from here.

    `read_only` gives the side that cannot write, and neither creates nor migrates anything.
    """
    from sealbook.book import Book, BookReader
    from sealbook.config import load_settings

    settings = load_settings(path)
    if not read_only:
        return Book(settings)
    from sealbook.ledger.reader import open_ledger_reader

    return BookReader(settings, open_ledger_reader(settings.ledger, scope=settings.scope))


def __getattr__(name: str) -> object:
    """Load what is exported when it is first asked for: `import sealbook` alone costs nothing."""
    if name == "Selection":
        from sealbook.model.selection import Selection

        return Selection
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
