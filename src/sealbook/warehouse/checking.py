"""What is read of an artifact, held against its load record at the cost of a footer.

Readers do so with every file they open: a file that was put in place of another says in its footer whose rows
it holds, and its size and rows are others. Digests would take the whole file; they are for `Verification`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet

from sealbook.errors import Corrupt
from sealbook.model.artifacts import FIRST_FORMAT
from sealbook.model.publication import Published
from sealbook.model.words import counted
from sealbook.warehouse.encoding import read_stamp, stamp_of
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles

Taken = TypeVar("Taken")


def take_parts(
    files: PartFiles, published: Published, take: Callable[[pyarrow.parquet.ParquetFile], Taken]
) -> Iterator[Taken]:
    """Open the parts of an artifact in their order, and yield what is taken of each.

    Corrupt, which names partition and file, if they are not what was loaded.
    """
    check = PartsCheck(published)
    for path in part_paths(published):
        with files.open(path, published.bytes // published.parts) as file, check.reading(path):
            part = pyarrow.parquet.ParquetFile(file)
            check.add(path, file.size(), part.metadata)
            taken = take(part)
        yield taken
    check.finish()


def check_artifact(files: PartFiles, published: Published) -> None:
    """Look at the footers of an artifact; Corrupt if they are not of what was loaded."""
    for _ in take_parts(files, published, lambda part: part.metadata):
        pass


class PartsCheck:
    """Holds the parts of one artifact, given in their order, against what was recorded of it."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._parts = self._bytes = self._rows = 0

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Turn a failure to read a part into Corrupt."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise self._corrupt(path, f"it cannot be read: {error}") from error

    def add(self, path: str, size: int, footer: pyarrow.parquet.FileMetaData) -> None:
        """Take the next part; Corrupt if it says that it is another one. The first format says nothing."""
        published = self._published
        if published.format != FIRST_FORMAT:
            expected, found = stamp_of(published, self._parts), read_stamp(footer)
            if found != expected:
                raise self._corrupt(path, f"its footer says {found or 'nothing'}, not {expected}")
        self._parts += 1
        self._bytes += size
        self._rows += footer.num_rows

    def finish(self) -> None:
        """Compare rows and bytes of all parts with those recorded."""
        published = self._published
        if self._rows != published.record_count:
            raise self._corrupt(
                published.location, f"it has {counted(self._rows, 'row')}, not {published.record_count:,}"
            )
        if self._bytes != published.bytes:
            raise self._corrupt(
                published.location, f"it has {counted(self._bytes, 'byte')}, not {published.bytes:,}"
            )

    def _corrupt(self, path: str, problem: str) -> Corrupt:
        return Corrupt(
            f"the artifact {path} is not what was loaded as {self._published.key}: {problem}",
            remedy="`sealbook warehouse verify` names all such; `sealbook load --rebuild` stages them again"
            " from their raw payloads.",
        )
