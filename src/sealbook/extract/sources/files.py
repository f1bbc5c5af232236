"""The source `files`: what somebody drops into a folder or an object store, once a day is complete."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sealbook.config import SourceOptions
from sealbook.errors import ConfigError, shown_url
from sealbook.extract.source import Remark, Row, read_options
from sealbook.extract.sources.files_options import Complete, CsvForm, Drop, FilesOptions, Format, format_of
from sealbook.extract.sources.query_texts import BadText, check_columns, check_texts, read_text
from sealbook.model import PartitionKey
from sealbook.model.contract import Query

if TYPE_CHECKING:
    from sealbook.storage import Storage

_TYPE = "files"


@dataclass(frozen=True, slots=True)
class _Dropped:
    """What a query says, with what the options say where it says nothing."""

    drop: Drop
    complete: Complete
    format: Format
    csv: CsvForm


class FilesSource:
    """Reads the files of a day one after the other, once all of them are there."""

    def __init__(self, options: FilesOptions, url: str) -> None:
        """Take checked options, and the URL or folder in its absolute form."""
        self._options = options
        self._url = url
        self._opened: Storage | None = None
        self._lock = threading.Lock()

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make a source of the fields of FilesOptions."""
        checked = read_options(_TYPE, FilesOptions, options)
        root = options.root if isinstance(options, SourceOptions) else Path()
        is_folder = "://" not in checked.url
        return cls(checked, str(root / Path(checked.url).expanduser()) if is_folder else checked.url)

    def check(self, queries: Sequence[Query]) -> None:
        """Read which files queries are made of, and see that the folder or bucket is there."""
        check_texts(queries, self._dropped)
        self._storage().check(writing=False)

    def examine(self, queries: Sequence[Query], today: date) -> list[Remark]:  # noqa: ARG002
        """Say that the folder or bucket can be read."""
        self._storage().check(writing=False)
        return [Remark(f"{shown_url(self._url)} can be read")]

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Row]:
        """Give the rows of all files of one partition."""
        from sealbook.extract.sources.files_finding import Finder
        from sealbook.extract.sources.files_reading import Reader

        given = self._dropped(query)
        storage = self._storage()
        contract = query.contracts[query.schema_version]
        reader = Reader(storage, given.format, given.csv, given.drop.columns, contract)
        finder = Finder(storage, self._options.ask_again_seconds)
        for file in finder.find(given.drop.files, given.complete, key):
            yield from reader.rows(file)

    def _dropped(self, query: Query) -> _Dropped:
        drop = read_text(query, Drop, "files")
        check_columns(query, drop.columns)
        if not drop.files.has_day:
            raise BadText(
                query,
                "the files do not say where the day goes",
                remedy="Write {logical_date} into the path: each day has rows of its own.",
            )
        complete = drop.complete or self._options.complete
        if complete is None:
            raise BadText(
                query,
                "nothing says when a day is complete",
                remedy="Say so by `complete: {marker: _SUCCESS}`, `{manifest: …}` or `{files: 1}`,"
                " here or in the options.",
            )
        form = drop.format or self._options.format or format_of(drop.files)
        if form is None:
            raise BadText(
                query,
                "the name of the files does not tell what they are",
                remedy="Say `format: csv`, `jsonl` or `parquet`.",
            )
        return _Dropped(drop, complete, form, drop.csv or self._options.csv)

    def _storage(self) -> Storage:
        """Open the storage once; a folder that is not there is not made."""
        from sealbook.storage import missing_folder, open_storage

        with self._lock:
            if self._opened is None:
                folder = missing_folder(_TYPE, self._url)
                if folder is not None:
                    raise ConfigError(f"there is no folder {folder}", remedy="Correct `url`, or mount it.")
                self._opened = open_storage(_TYPE, self._url)[1]
            return self._opened
