"""What Sealbook asks of a storage, on any object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError

from sealbook.errors import Permanent
from sealbook.storage.ahead import Done, Item, ahead
from sealbook.storage.failures import (
    TranslatedWriter,
    Writer,
    has_status,
    is_missing_bucket,
    reported,
    translated,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CHUNK = 4 * 1024 * 1024
# Four parts of 8 MB in flight bound the memory of a write.
_PART = 8 * 1024 * 1024
_PARTS_IN_FLIGHT = 4
PROBES = "_probe"
"""The directory of what is written only to be taken away again."""

# What S3 sends at once; obstore would hand it on in pieces of 50.
_PAGE = 1000


class Entry(NamedTuple):
    """An object as a listing shows it."""

    path: str
    size: int
    modified: datetime


Branch = tuple[str, Callable[[], Mapping[str, Entry]]]
"""The path of a directory, and a way to the files in it, by their names."""


class Storage:
    """An object store, whose puts are atomic, and durable when they return.

    `root` is what errors put before a path.
    """

    def __init__(self, store: ObjectStore, root: str = "") -> None:
        self._store = store
        self._prefix = f"{root}/" if root else ""

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that it is; None for an object store, which is mostly waited for."""
        return None

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], size: Callable[[Item], int] = lambda _: 0
    ) -> Iterator[Done]:
        """Do what asks this storage for each item, many at once and in order, as it is mostly waited for.

        `size` tells how many bytes the result has, so that not too many are held.
        """
        return ahead(work, items, size=size)

    def check(self, *, writing: bool) -> None:  # noqa: ARG002 - to know more, something would have to be written
        """Ask the storage once whether it is there and can be used; raises what every later call would."""
        with self._translated(), self._listing_errors():
            next(iter(obstore.list(self._store)), None)

    def probe(self) -> None:
        """Write something small and take it away; Permanent says what the storage does not do as it must.

        What is there must be read as it was written, be listed, and not be written over by who creates.
        """
        path, first, second = f"{PROBES}/{uuid4().hex}", b"first", b"second"
        created = self.create(path, first)
        try:
            if not created or self.create(path, second) or self.get(path) != first:
                raise Permanent(
                    f"{self._prefix}{path} was written twice: the storage does not keep to create-only puts",
                    remedy="Use a storage that honours `If-None-Match: *`: without it two writers could seal"
                    " the same partition.",
                )
            if path not in self.names(PROBES):
                raise Permanent(
                    f"{self._prefix}{path} was written, and is not listed",
                    remedy="Use a storage whose listings show at once what was written.",
                )
        finally:
            self.delete([path])

    def entries(self, directory: str) -> list[Entry]:
        """List all that lies below a directory, at any depth, in the order of paths."""
        with self._translated(directory), self._listing_errors():
            pages = obstore.list(self._store, directory, chunk_size=_PAGE)
            return sorted(
                Entry(item["path"], item["size"], item["last_modified"]) for page in pages for item in page
            )

    def tree(self, directory: str, depth: int) -> Iterator[Branch]:  # noqa: ARG002 - one listing tells all
        """Yield the directories so many levels below a directory, in order, each with a way to its files.

        A folder looks into a directory when its files are asked for, and may yield empty ones.
        """
        found: dict[str, dict[str, Entry]] = {}
        for entry in self.entries(directory):
            parent, _, name = entry.path.rpartition("/")
            found.setdefault(parent, {})[name] = entry
        for parent, files in found.items():
            yield parent, partial(dict, files)

    def names(self, directory: str) -> list[str]:
        """List the same paths, in the same order."""
        return [entry.path for entry in self.entries(directory)]

    def sizes(self, directory: str) -> dict[str, int]:
        """List the same paths, in the same order, with the bytes of each object."""
        return {entry.path: entry.size for entry in self.entries(directory)}

    def directories(self, directory: str | None = None) -> list[str]:
        """List the paths of the directories right below a directory, or below the root, in order."""
        with self._translated(directory or ""), self._listing_errors():
            return sorted(obstore.list_with_delimiter(self._store, directory)["common_prefixes"])

    def size(self, path: str) -> int | None:
        """Return how many bytes an object has; None when there is none."""
        with self._translated(path):
            try:
                return obstore.head(self._store, path)["size"]
            except FileNotFoundError:
                return None

    def get(self, path: str) -> bytes | None:
        """Return a whole object; None when there is none."""
        with self._translated(path):
            try:
                return bytes(obstore.get(self._store, path).bytes())
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                return None

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Return some bytes of an object that has at least `end` of them."""
        with self._translated(path):
            return bytes(obstore.get_range(self._store, path, start=start, end=end))

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield an object in chunks of some MB; NotFound when there is none."""
        with self._translated(path):
            chunks = iter(obstore.get(self._store, path).stream(min_chunk_size=CHUNK))
        while True:
            with self._translated(path):
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    @contextmanager
    def stage(self, path: str) -> Iterator[Writer]:
        """Write an object chunk by chunk: it is whole and durable after the block, and gone if that fails."""
        with self._translated(path):
            writer = obstore.open_writer(
                self._store, path, buffer_size=_PART, max_concurrency=_PARTS_IN_FLIGHT
            )
        try:
            yield TranslatedWriter(writer, self._prefix + path)
            with self._translated(path):
                writer.close()
        except BaseException:
            with reported(f"{path} was given up, but may be left over"):
                # An upload that is only dropped would stay in the store, unseen and paid for.
                if not writer.closed():
                    with self._translated(path):
                        writer.close()
                self.delete([path])
            raise

    def create(self, path: str, data: bytes) -> bool:
        """Write a small object unless there is one already, atomically; say whether it was written."""
        with self._translated(path):
            try:
                obstore.put(self._store, path, data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def put(self, path: str, data: bytes, *, draft: str) -> None:  # noqa: ARG002 - a put is atomic here
        """Write an object under a name that vouches for its bytes, atomically, unless it is there.

        One that is there with other bytes is damaged, and put right. A folder writes it as `draft` first, and
        may lose it with the power until it is told to `sync`.
        """
        if not self.create(path, data) and self.get(path) != data:
            with self._translated(path):
                obstore.put(self._store, path, data)

    def sync(self, paths: Iterable[str]) -> None:
        """Make objects durable, with the directories that lead to them; an object store's are already."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; one that is gone already is no error."""
        with self._translated(", ".join(paths)):
            try:
                obstore.delete(self._store, paths)
            except FileNotFoundError:
                self._delete_each(paths)

    def _translated(self, path: str = "") -> AbstractContextManager[None]:
        """Turn errors in the block into Sealbook's own, which name the path in full."""
        return translated((self._prefix + path).rstrip("/") or "the root")

    @contextmanager
    def _listing_errors(self) -> Iterator[None]:
        """Tell a listing that was refused from one that failed: obstore raises GenericError for both."""
        try:
            yield
        except GenericError as error:
            if has_status(error, 404):  # it finds nothing, if there is nothing; so it is the bucket
                raise FileNotFoundError(str(error)) from error
            self.size("_")  # fails by the type that fits, if the storage refuses this as well
            raise

    def _delete_each(self, paths: Sequence[str]) -> None:
        """Delete one by one, for a store that stops at the first that is gone."""
        for path in paths:
            try:
                obstore.delete(self._store, path)
            except FileNotFoundError:
                continue
