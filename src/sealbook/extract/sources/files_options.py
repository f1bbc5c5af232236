"""What a folder of files can be told: options of the source, and the text of a query."""

from __future__ import annotations

import codecs
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from sealbook.extract.sources.records import Way
from sealbook.extract.sources.templates import Template


class Format(StrEnum):
    """What a file is."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


_FORMATS = {
    ".csv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".parquet": Format.PARQUET,
}
GZIP = ".gz"
WILDCARDS = frozenset("*?[")


class Complete(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to tell that all files of a day are there: by one of these."""

    marker: Template | None = None
    """A file that is written last, whatever is in it."""
    manifest: Template | None = None
    """A file that is written last, and lists the others."""
    files: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many files there are. For places where a file is whole as soon as it is there."""

    def __post_init__(self) -> None:
        given = [each for each in (self.marker, self.manifest, self.files) if each is not None]
        if len(given) != 1:
            raise ValueError("one of `marker`, `manifest` and `files` says when a day is complete")


class CsvForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How CSV is written."""

    delimiter: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = ","
    quote: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = '"'
    names: tuple[str, ...] = ()
    """The names of the columns, for files without a header; without it the first line has them."""
    nulls: tuple[str, ...] = ("",)
    """What stands for null."""
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"there is no encoding {self.encoding!r}") from None
        if len(set(self.names)) < len(self.names):
            raise ValueError("a name stands twice in `names`")


class FilesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a folder of files can be told. Credentials of an object store are read where they lie."""

    url: str
    """A folder, relative to the book's settings, or an s3://, gs:// or az:// URL."""
    complete: Complete | None = None
    """How to tell that a day is complete, for queries that say nothing of it."""
    format: Format | None = None
    """What files are, for queries that say nothing of it; else their names say it."""
    csv: CsvForm = CsvForm()
    ask_again_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0
    """How long a day that is not complete is left alone."""


class Drop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a query: which files."""

    files: Template
    """Below the URL of the source; with `*`, `?` and `[…]` in the last name for several."""
    complete: Complete | None = None
    format: Format | None = None
    csv: CsvForm | None = None
    columns: dict[str, Way] = {}
    """Columns, each with the name, or the way to it, in the file; without any, all are taken as they are."""

    def __post_init__(self) -> None:
        *folders, name = self.files.split("/")
        if not name or any(each in ("", ".", "..") for each in folders):
            raise ValueError("files are named by a path below the URL: folder/name.csv")
        if any(WILDCARDS & set(each) for each in folders):
            raise ValueError("only the last name of the path can have *, ? and […]")


def format_of(name: str) -> Format | None:
    """Return the format that the name of a file, or a pattern for it, tells."""
    return _FORMATS.get(PurePosixPath(name.removesuffix(GZIP)).suffix)
