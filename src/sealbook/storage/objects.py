"""What Sealbook asks of a storage, on any object store; and the one place that translates its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from sealbook.errors import NotFound, Permanent, SealbookError, Transient

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CHUNK = 4 * 1024 * 1024
# Four parts of 8 MB in flight bound the memory of a write.
_PART = 8 * 1024 * 1024
_PARTS_IN_FLIGHT = 4
# What S3 sends at once; obstore would hand it on in pieces of 50.
_PAGE = 1000

_log = logging.getLogger(__name__)
_URL_QUERY = re.compile(r"(?<=://)([^\s?]*)\?\S*")
_SUMMARY = 400


class Writer(Protocol):
    """Where the chunks of a staged payload go."""

    def write(self, chunk: bytes, /) -> object:
        """Take the next chunk."""


class Storage:
    """An object store, whose puts and copies are atomic, and durable when they return.

    `largest` is the most bytes that one copy may have, where the storage has such a limit.
    """

    def __init__(self, store: ObjectStore, *, largest: int | None = None) -> None:
        self._store = store
        self.largest = largest

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that it is; None for an object store, which is mostly waited for."""
        return None

    def names(self, directory: str) -> list[str]:
        """List the paths of all that lies below a directory, at any depth, in order."""
        return list(self.sizes(directory))

    def sizes(self, directory: str) -> dict[str, int]:
        """List the same paths, in the same order, with the bytes of each object."""
        with translated(directory), self._listing_errors(directory):
            pages = obstore.list(self._store, directory, chunk_size=_PAGE)
            return dict(sorted((item["path"], item["size"]) for page in pages for item in page))

    def directories(self, directory: str | None = None) -> list[str]:
        """List the paths of the directories right below a directory, or below the root, in order."""
        with translated(directory or "the root"), self._listing_errors(directory or "_"):
            return sorted(obstore.list_with_delimiter(self._store, directory)["common_prefixes"])

    def size(self, path: str) -> int | None:
        """Return how many bytes an object has; None when there is none."""
        with translated(path):
            try:
                return obstore.head(self._store, path)["size"]
            except FileNotFoundError:
                return None

    def get(self, path: str) -> bytes | None:
        """Return a whole object; None when there is none."""
        with translated(path):
            try:
                return bytes(obstore.get(self._store, path).bytes())
            except FileNotFoundError:
                return None

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Return some bytes of an object that has at least `end` of them."""
        with translated(path):
            return bytes(obstore.get_range(self._store, path, start=start, end=end))

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield an object in chunks of some MB; NotFound when there is none."""
        with translated(path):
            chunks = iter(obstore.get(self._store, path).stream(min_chunk_size=CHUNK))
        while True:
            with translated(path):
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    @contextmanager
    def stage(self, path: str) -> Iterator[Writer]:
        """Write an object chunk by chunk: it is whole and durable after the block, and gone if that fails."""
        with translated(path):
            writer = obstore.open_writer(
                self._store, path, buffer_size=_PART, max_concurrency=_PARTS_IN_FLIGHT
            )
        try:
            yield TranslatedWriter(writer, path)
            with translated(path):
                writer.close()
        except BaseException:
            with reported(f"{path} was given up, but may be left over"):
                # An upload that is only dropped would stay in the store, unseen and paid for.
                if not writer.closed():
                    with translated(path):
                        writer.close()
                self.delete([path])
            raise

    def create(self, path: str, data: bytes) -> bool:
        """Write a small object unless there is one already, atomically; say whether it was written."""
        with translated(path):
            try:
                obstore.put(self._store, path, data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def confirm(self, _intent: str, path: str, data: bytes, /) -> bool:
        """Write the data of an intent under its final name, unless that is taken, atomically; say whether."""
        return self.create(path, data)

    def put(self, path: str, data: bytes, *, draft: str) -> None:  # noqa: ARG002 - a put is atomic here
        """Write an object, atomically, unless one with the same bytes is there; another one is replaced.

        A folder writes it as `draft` first, and may lose it with the power until it is told to `sync`.
        """
        if not self.create(path, data) and self.get(path) != data:
            with translated(path):
                obstore.put(self._store, path, data)

    def replace(self, staged: str, path: str) -> bool:
        """Put a staged object in the place of what is at a path, atomically; False if it is gone."""
        with translated(path):
            try:
                obstore.copy(self._store, staged, path)
            except FileNotFoundError:
                return False
            return True

    def sync(self, paths: Iterable[str]) -> None:
        """Make objects durable, with the directories that lead to them; an object store's are already."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; one that is gone already is no error."""
        with translated(", ".join(paths)):
            try:
                obstore.delete(self._store, paths)
            except FileNotFoundError:
                self._delete_each(paths)

    @contextmanager
    def _listing_errors(self, path: str) -> Iterator[None]:
        """Tell a listing that was refused from one that failed: obstore raises GenericError for both."""
        try:
            yield
        except GenericError:
            self.size(path)  # fails by the type that fits, if the storage refuses this as well
            raise

    def _delete_each(self, paths: Sequence[str]) -> None:
        """Delete one by one, for a store that stops at the first that is gone."""
        for path in paths:
            try:
                obstore.delete(self._store, path)
            except FileNotFoundError:
                continue


@contextmanager
def reported(consequence: str) -> Iterator[None]:
    """Tidy up in the block: if that fails, log it, so that it does not hide what the caller must hear of."""
    try:
        yield
    except SealbookError as error:
        _log.warning("%s: %s", consequence, error)


class TranslatedWriter:
    """A writer whose errors name the path and are Sealbook's own."""

    def __init__(self, writer: Writer, path: str) -> None:
        self._writer = writer
        self._path = path

    def write(self, chunk: bytes, /) -> None:
        """Take the next chunk."""
        with translated(self._path):
            self._writer.write(chunk)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn an error of the storage into one of Sealbook's, by its type alone."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(
            f"{where} cannot be found: {_summary(error)}",
            remedy="Check that its bucket or folder exists.",
        ) from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise Permanent(
            f"the storage refused access to {where}: {_summary(error)}",
            remedy="Check the credentials in the environment and what they permit.",
        ) from error
    except (InvalidPathError, NotSupportedError) as error:
        raise Permanent(f"the storage cannot serve {where}: {_summary(error)}") from error
    except (BaseError, OSError) as error:
        raise Transient(
            f"the storage failed at {where}: {_summary(error)}",
            remedy="Try again; if it goes on, check that the storage can be reached and has room.",
        ) from error


def _summary(error: Exception) -> str:
    """Shorten a report for people: its first paragraph, without the query of a URL, which may be signed."""
    text = " ".join(str(error).partition("\n\n")[0].split())
    return _URL_QUERY.sub(r"\1", text)[:_SUMMARY] or type(error).__name__
