"""Artifacts on a folder or an object store: whole or not there, and on disk before they are published."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ulid import ULID

from sealbook.errors import Transient
from sealbook.storage import open_medium, translated
from sealbook.warehouse.layout import DRAFTS

# Requests are mostly waited for; and a file system writes its journal once for all who wait at the same time.
_AT_ONCE = 16
_TRIES = 3


class ArtifactStore:
    """Objects below the root of a warehouse. Made by `ArtifactStore.open`; pickles as its URL, for workers.

    What was `put` may be lost with the power until `settle` has returned.
    """

    def __init__(self, url: str) -> None:
        self.url, self._medium = open_medium("warehouse", url)
        parts = urlsplit(self.url)
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._unsettled: list[str] = []
        if self._folder is not None:
            with translated(self.url):
                (self._folder / DRAFTS).mkdir(exist_ok=True)

    @classmethod
    def open(cls, url: str | Path) -> ArtifactStore:
        """Open the store at a folder (made if need be), `s3://bucket/prefix`, `gs://…` or `az://…`."""
        return cls(str(url))

    def __reduce__(self) -> tuple[object, ...]:
        return ArtifactStore, (self.url,)

    def __repr__(self) -> str:
        return f"ArtifactStore({self.url!r})"

    def put(self, path: str, data: bytes) -> None:
        """Write an object, atomically, unless one with the same bytes is there; another one is replaced."""
        if self._folder is not None:
            with translated(path):
                self._put_file(self._folder, path, data)
        elif not self._medium.create(path, data) and self._medium.get(path) != data:
            draft = _new_draft()
            with self._medium.stage(draft) as writer:
                writer.write(data)
            replaced = self._medium.publish(draft, path)
            self._medium.delete([draft])
            if not replaced:
                raise Transient(f"{path}: {draft} was deleted under way", remedy="Try again.")

    def put_all(self, objects: Mapping[str, bytes]) -> None:
        """Put several objects: on an object store many at once, since each is mostly waited for."""
        if self._folder is not None:
            for path, data in objects.items():
                self.put(path, data)
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for _ in pool.map(self.put, objects.keys(), objects.values()):
                    pass

    def settle(self) -> None:
        """Bring to disk all that was put by this store, with the directories that lead there."""
        if self._folder is None or not self._unsettled:
            return
        files = list(dict.fromkeys(self._unsettled))
        with translated(self.url), ThreadPoolExecutor(_AT_ONCE) as pool:
            for paths in (files, list(_leading_to(files))):
                shares = (paths[start::_AT_ONCE] for start in range(_AT_ONCE))
                for _ in pool.map(_sync_all, repeat(str(self._folder)), shares):
                    pass
        self._unsettled.clear()

    def get(self, path: str) -> bytes | None:
        """Return a whole object; None when there is none."""
        return self._medium.get(path)

    def sha256(self, path: str) -> str:
        """Return the sha256 of an object; NotFound when there is none."""
        digest = sha256()
        for chunk in self._medium.stream(path):
            digest.update(chunk)
        return digest.hexdigest()

    def sizes(self, directory: str) -> dict[str, int]:
        """List the paths below a directory, at any depth and in order, with the bytes of each object."""
        return self._medium.sizes(directory)

    def directories(self, directory: str | None = None) -> list[str]:
        """List the paths of the directories right below a directory, or below the root, in order."""
        return self._medium.directories(directory)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, and on a folder directories that this leaves empty; what is gone is no error."""
        doomed = list(paths)
        self._medium.delete(doomed)
        if self._folder is not None:
            for directory in {(self._folder / path).parent for path in doomed}:
                self._prune(directory)

    def abandoned_drafts(self, since: datetime) -> list[str]:
        """List the drafts that nobody can be writing any more, as they were begun before a time."""
        found = []
        for path in self._medium.names(DRAFTS):
            try:
                begun = ULID.from_str(path.rpartition("/")[2]).datetime
            except ValueError:
                continue  # not ours
            if begun < since:
                found.append(path)
        return found

    def _put_file(self, folder: Path, path: str, data: bytes) -> None:
        self._unsettled.append(path)
        target = folder / path
        with suppress(FileNotFoundError):
            if target.read_bytes() == data:
                return
        draft = folder / _new_draft()
        try:
            draft.write_bytes(data)
            _move(draft, target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _prune(self, directory: Path) -> None:
        with suppress(OSError):  # not empty, or somebody else was quicker: both are as they should be
            while directory != self._folder:
                directory.rmdir()
                directory = directory.parent


def _new_draft() -> str:
    return f"{DRAFTS}/{ULID()}"


def _move(draft: Path, target: Path) -> None:
    """Give a file its place, though a clean-up may be removing the directories of that just now."""
    for left in reversed(range(_TRIES)):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.replace(target)
        except FileNotFoundError:
            if not left:
                raise
        else:
            return


def _leading_to(paths: Iterable[str]) -> set[str]:
    """Return the directories that lead to files, with the root, which is empty."""
    found = {""}
    for path in paths:
        directory = path.rpartition("/")[0]
        while directory not in found:
            found.add(directory)
            directory = directory.rpartition("/")[0]
    return found


def _sync_all(root: str, paths: Sequence[str]) -> None:
    for path in paths:
        fd = os.open(f"{root}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
