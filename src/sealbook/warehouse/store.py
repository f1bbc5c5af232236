"""Artifacts on a folder or an object store: whole or not there, and on disk before they are published."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from ulid import ULID

from sealbook.errors import SealbookError, Unwritable
from sealbook.storage import open_storage
from sealbook.warehouse.layout import DRAFTS

_SMALL = 4096


class ArtifactStore:
    """Objects below the root of a warehouse. Made by `ArtifactStore.open`; pickles as its URL, for workers.

    What was `put` may be lost with the power until `sync` has returned.
    """

    def __init__(self, url: str) -> None:
        self.url, self._storage = open_storage("warehouse", url)
        self._unsynced: list[str] = []

    @classmethod
    def open(cls, url: str | Path) -> ArtifactStore:
        """Open the store at a folder (made if need be), `s3://bucket/prefix`, `gs://…` or `az://…`."""
        return cls(str(url))

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that the store is; None for an object store."""
        return self._storage.folder

    def __reduce__(self) -> tuple[object, ...]:
        return ArtifactStore, (self.url,)

    def __repr__(self) -> str:
        return f"ArtifactStore({self.url!r})"

    def check(self, *, writing: bool) -> None:
        """Ask the storage once whether it is there and can be used; raise what is wrong with it."""
        self._storage.check(writing=writing)

    def put(self, path: str, data: bytes) -> None:
        """Write an object under a name that carries its digest, atomically, unless it is there."""
        # Noted even if it is there: whoever wrote it may not have brought it to disk.
        self._unsynced.append(path)
        self._storage.put(path, data, draft=f"{DRAFTS}/{ULID()}")

    def put_all(self, objects: Mapping[str, bytes]) -> dict[str, SealbookError]:
        """Put several objects, on an object store many at once; return what the storage did not take."""
        return self._failures(lambda path: self.put(path, objects[path]), objects)

    def sync(self) -> dict[str, SealbookError]:
        """Bring to disk all that was put by this store, with the directories that lead there.

        Return what could not be brought there, and cannot be relied on.
        """
        paths = dict.fromkeys(self._unsynced)
        self._unsynced.clear()
        try:
            self._storage.sync(paths)
        except SealbookError:  # of one of them: find out of which
            return self._failures(lambda path: self._storage.sync([path]), paths)
        return {}

    def check_writable(self) -> None:
        """Write something small, and take it away; Unwritable, with the cause, if nothing can be written."""
        path = f"{DRAFTS}/{ULID()}"
        try:
            self._storage.put(path, bytes(_SMALL), draft=f"{DRAFTS}/{ULID()}")
            self._storage.sync([path])
            self._storage.delete([path])
        except SealbookError as error:
            raise Unwritable(
                f"the warehouse {self.url} takes nothing: {error}",
                remedy="Make room there, or get the right to write, and load again. What is published stays.",
            ) from error

    def get(self, path: str) -> bytes | None:
        """Return a whole object; None when there is none."""
        return self._storage.get(path)

    def sha256(self, path: str) -> str:
        """Return the sha256 of an object; NotFound when there is none."""
        digest = sha256()
        for chunk in self._storage.stream(path):
            digest.update(chunk)
        return digest.hexdigest()

    def sizes(self, directory: str) -> dict[str, int]:
        """List the paths below a directory, at any depth and in order, with the bytes of each object."""
        return self._storage.sizes(directory)

    def directories(self, directory: str | None = None) -> list[str]:
        """List the paths of the directories right below a directory, or below the root, in order."""
        return self._storage.directories(directory)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, and on a folder directories that this leaves empty; what is gone is no error."""
        doomed = list(paths)
        self._storage.delete(doomed)
        if self.folder is not None:
            for directory in {(self.folder / path).parent for path in doomed}:
                _prune(directory, self.folder)

    def abandoned_drafts(self, since: datetime) -> list[str]:
        """List the drafts that nobody can be writing any more, as they were begun before a time."""
        found = []
        for path in self._storage.names(DRAFTS):
            try:
                begun = ULID.from_str(path.rpartition("/")[2]).datetime
            except ValueError:
                continue  # not ours
            if begun < since:
                found.append(path)
        return found

    def _failures(self, act: Callable[[str], None], paths: Collection[str]) -> dict[str, SealbookError]:
        """Act on each path, and return the errors of those that failed."""

        def error_of(path: str) -> SealbookError | None:
            try:
                act(path)
            except SealbookError as error:
                return error
            return None

        errors = zip(paths, self._storage.each(error_of, paths), strict=True)
        return {path: error for path, error in errors if error is not None}


def _prune(directory: Path, root: Path) -> None:
    with suppress(OSError):  # not empty, or somebody else was quicker: both are as they should be
        while directory != root:
            directory.rmdir()
            directory = directory.parent
