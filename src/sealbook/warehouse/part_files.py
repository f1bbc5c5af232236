"""The part files of artifacts, opened for reading on a folder or an object store. Nothing here writes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local

import pyarrow as pa

from sealbook.errors import NotFound
from sealbook.storage import Storage, open_storage, translated
from sealbook.storage.ahead import Done, Item

_READ_WHOLE_BYTES = 1024 * 1024


class PartFiles:
    """Files below the root of a warehouse. Pickles as its URL, for workers."""

    def __init__(self, url: str) -> None:
        self.url, self._storage = open_storage("warehouse", url)

    def __reduce__(self) -> tuple[object, ...]:
        return PartFiles, (self.url,)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that the files lie below; None for an object store."""
        return self._storage.folder

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], size: Callable[[Item], int]
    ) -> Iterator[Done]:
        """Do what reads these files for each item, in order; on an object store many at once."""
        return self._storage.each(work, items, size)

    def open(self, path: str, size: int) -> pa.NativeFile:
        """Open a file of about this size: a small one is fetched at once, a large one as it is read."""
        if size >= _READ_WHOLE_BYTES:
            return self.open_lazily(path)
        data = self._storage.get(path)
        if data is None:
            raise _gone(path)
        return pa.BufferReader(data)

    def open_lazily(self, path: str) -> pa.NativeFile:
        """Open a file whose bytes are fetched when they are asked for, by any number of threads."""
        if self.folder is None:
            return pa.PythonFile(_RemoteFile(self._storage, path), mode="r")
        with _named(path):
            return pa.OSFile(str(self.local_path(path)))

    def local_size(self, path: str) -> int:
        """Return the size of a file of a folder."""
        with _named(path):
            return self.local_path(path).stat().st_size

    def local_path(self, path: str) -> Path:
        """Return where a file of a folder is."""
        assert self.folder is not None
        return self.folder / path


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        with translated(path):
            yield
    except NotFound as error:
        raise _gone(path) from error


def _gone(path: str) -> NotFound:
    return NotFound(
        f"the artifact {path} is gone",
        remedy="Read again, if the read was planned long ago and a newer run has taken its place since."
        " Else `sealbook warehouse verify` says what is missing, and `sealbook load` writes it again.",
    )


class _RemoteFile(io.RawIOBase):
    """An object, read by ranges. Each thread has a position of its own: Arrow seeks, and then reads."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._size: int | None = None
        self._thread = local()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return getattr(self._thread, "position", 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: 0}[whence]
        if whence == io.SEEK_END:
            start = self.size()
        self._thread.position = start + offset
        return self.tell()

    def size(self) -> int:
        if self._size is None:
            self._size = self._storage.size(self._path)
            if self._size is None:
                raise _gone(self._path)
        return self._size

    def read(self, size: int = -1) -> bytes:
        start = self.tell()
        end = self.size() if size < 0 else min(start + size, self.size())
        if start >= end:
            return b""
        with _named(self._path):
            data = self._storage.get_range(self._path, start, end)
        self._thread.position = start + len(data)
        return data
