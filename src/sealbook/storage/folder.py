"""The same storage on a local folder, where atomic and durable take a few more steps."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path
from uuid import uuid4

from obstore.store import LocalStore

from sealbook.errors import Permanent
from sealbook.storage.ahead import Done, Item
from sealbook.storage.failures import TranslatedWriter, Writer, reported, unwritable
from sealbook.storage.objects import CHUNK, PROBES, Branch, Entry, Storage

_PIECE = 64 * 1024
# A file system writes its journal once for all who wait at the same time.
_SYNCS_AT_ONCE = 16
_TRIES = 3


class Folder(Storage):
    """A folder that survives a loss of power.

    obstore lists it; but it does not fsync, and it streams a file twenty times slower than a plain read, so
    files are handled here. A file gets its name by a link or rename, both atomic, and once its bytes are on
    disk; only those that are `put` get there later, all together, by `sync`.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(LocalStore(root), str(root))
        self._root = root

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._root

    def each(
        self,
        work: Callable[[Item], Done],
        items: Iterable[Item],
        size: Callable[[Item], int] = lambda _: 0,  # noqa: ARG002 - one at a time is held
    ) -> Iterator[Done]:
        """Do something for each item, one after the other: a folder answers at once."""
        return map(work, items)

    def check(self, *, writing: bool) -> None:
        """Ask whether the folder is there and can be used: to write, it must be writable and have room."""
        with self._translated():
            room = os.statvfs(self._root)
        if not os.access(self._root, os.R_OK | os.X_OK):
            raise Permanent(f"{self._root} cannot be read", remedy="Check who may read the folder.")
        if not writing:
            return
        if room.f_flag & os.ST_RDONLY:
            raise unwritable(str(self._root), _error(errno.EROFS))
        if not os.access(self._root, os.W_OK):
            raise unwritable(str(self._root), _error(errno.EACCES))
        if not room.f_bavail:
            raise unwritable(str(self._root), _error(errno.ENOSPC))

    def probe(self) -> None:
        """Write something small and take it away; Permanent says what the folder does not do as it must."""
        directory = self._root / PROBES
        with self._translated(PROBES):
            directory.mkdir(exist_ok=True)
        try:
            super().probe()
        finally:
            with suppress(OSError):  # another probe is in it
                directory.rmdir()

    def tree(self, directory: str, depth: int) -> Iterator[Branch]:
        """Yield the directories so many levels below a directory, in order, each with a way to its files."""
        for path in self._below(directory, depth):
            yield path, partial(self._files, path)

    def _below(self, directory: str, depth: int) -> Iterator[str]:
        with self._translated(directory):
            try:
                names = os.listdir(self._prefix + directory)  # noqa: PTH208 - by the million
            except (FileNotFoundError, NotADirectoryError):
                return
        names.sort()
        for name in names:
            path = f"{directory}/{name}"
            if depth == 1:
                yield path
            else:
                yield from self._below(path, depth - 1)

    def _files(self, directory: str) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        with self._translated(directory):
            try:
                with os.scandir(self._prefix + directory) as files:
                    for each in files:
                        if each.is_file():
                            status = each.stat()
                            modified = datetime.fromtimestamp(status.st_mtime, UTC)
                            found[each.name] = Entry(f"{directory}/{each.name}", status.st_size, modified)
            except (FileNotFoundError, NotADirectoryError):
                return {}  # removed just now, or no directory
        return found

    def get(self, path: str) -> bytes | None:
        """Return a whole file; None when there is none."""
        with self._translated(path):
            try:
                with FileIO(self._prefix + path) as file:
                    return file.readall()
            except FileNotFoundError:
                return None

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield a file in chunks of some MB; NotFound when there is none."""
        with self._translated(path):
            file = FileIO(self._prefix + path)
        with file:
            left = os.fstat(file.fileno()).st_size
            while True:
                with self._translated(path):
                    # No more room than is needed: to allocate it can take longer than to read a small file.
                    chunk = file.read(min(CHUNK, max(left, _PIECE)))
                if not chunk:
                    return
                yield chunk
                left -= len(chunk)

    @contextmanager
    def stage(self, path: str) -> Iterator[Writer]:
        """Write a file chunk by chunk: it is whole and on disk after the block, and gone if that fails."""
        target = self._root / path
        try:
            with self._translated(path):
                target.parent.mkdir(parents=True, exist_ok=True)
                file = _NewFile(target)
            try:
                yield TranslatedWriter(file, self._prefix + path)
                with self._translated(path):
                    file.sync()
            finally:
                file.close()
        except BaseException:
            with reported(f"{path} was given up, but may be left over"):
                self.delete([path])
            raise

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file unless there is one already, atomically; say whether it was written."""
        target = self._root / path
        draft = target.with_name(f"_new-{uuid4().hex}")
        with self._translated(path):
            file = _NewFile(draft)
            try:
                file.write(data)
                file.sync()
                return _link(draft, target)
            finally:
                file.close()
                draft.unlink(missing_ok=True)

    def put(self, path: str, data: bytes, *, draft: str) -> None:
        """Write a file under a name that vouches for its bytes, atomically, unless it is there.

        It may be lost with the power until `sync`, which is quicker for many files together. That may leave
        a file that is there with other bytes: then it is put right.
        """
        if self.get(path) == data:
            return
        new, target = self._root / draft, self._root / path

        def write() -> None:
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(new)
            except FileExistsError:
                if self.get(path) != data:
                    new.replace(target)

        with self._translated(path):
            try:
                _insist(write)
            finally:
                new.unlink(missing_ok=True)

    def sync(self, paths: Iterable[str]) -> None:
        """Bring files or directories to disk, and then all directories that lead to them, up to the root."""
        wanted = set(paths)
        self._sync_all(wanted)
        self._sync_all(_leading_to(wanted))

    def _sync_all(self, paths: Collection[str]) -> None:
        if len(paths) < _SYNCS_AT_ONCE:  # not worth the threads
            for path in paths:
                self._sync(path)
        else:
            with ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="sync") as pool:
                list(pool.map(self._sync, paths))

    def _sync(self, path: str) -> None:
        with self._translated(path):
            _sync(self._prefix + path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; one that is gone already is no error."""
        for path in paths:
            with self._translated(path):
                (self._root / path).unlink(missing_ok=True)


class _NewFile:
    """A file that did not exist, written without a buffer, so that closing it cannot fail halfway."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, chunk: bytes, /) -> None:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _link(source: Path, target: Path) -> bool:
    """Give a file that is on disk a second name, unless that is taken."""
    # What the new name vouches for was named before it, and must be on disk before it.
    _sync(target.parent)
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    return True


def _insist(act: Callable[[], object]) -> None:
    """Do what needs directories and a draft, though a clean-up may just be removing them: empty, or old."""
    for left in reversed(range(_TRIES)):
        try:
            act()
        except FileNotFoundError:
            if not left:
                raise
        else:
            return


def _leading_to(paths: Iterable[str]) -> set[str]:
    """Return the directories that lead to paths, with the root, which is empty; none if there is no path."""
    found: set[str] = set()
    for path in paths:
        directory = path
        while directory and (directory := directory.rpartition("/")[0]) not in found:
            found.add(directory)
    return found


def _sync(path: Path | str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
