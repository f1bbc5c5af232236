"""Which files make up a day, and whether all of them are there."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from sealbook.errors import Permanent, Transient
from sealbook.extract.sources.files_options import WILDCARDS, Complete
from sealbook.extract.sources.templates import Template
from sealbook.model import PartitionKey
from sealbook.model.words import counted
from sealbook.storage import Storage

_HIDDEN = ("_", ".")
"""How the names begin of what is beside the data: markers, temporary files."""
_MOST_MANIFEST_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Expected:
    """A file to read, and what it must turn out to be, as far as that is known."""

    path: str
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None


class _Listed(msgspec.Struct, frozen=True):
    """A file of a manifest; further members are the business of who wrote it."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)] | None = None
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$")] | None = None
    md5: Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")] | None = None


class _Manifest(msgspec.Struct, frozen=True):
    files: tuple[_Listed | str, ...]


_MANIFEST = msgspec.json.Decoder(_Manifest | tuple[_Listed | str, ...])


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds the files of a partition in a storage; what is not there yet is asked for again later."""

    storage: Storage
    ask_again_seconds: float

    def find(self, files: Template, complete: Complete, key: PartitionKey) -> list[Expected]:
        """Return the files of a partition in the order of reading: a manifest's, else that of their paths.

        Transient, with a wait, if they are not all there yet.
        """
        path = PurePosixPath(files.fill(key))
        if complete.manifest is not None:
            return self._listed(_beside(path, complete.manifest.fill(key)), key)
        if complete.marker is not None:
            marker = _beside(path, complete.marker.fill(key))
            if self.storage.size(marker) is None:
                raise self._not_yet(key, f"its marker {marker} is not there")
        found = self._matching(path)
        if complete.files is None:
            if not found and not WILDCARDS & set(path.name):
                raise self._not_yet(key, f"{path} is not there, but its marker is")
            return found
        if len(found) < complete.files:
            raise self._not_yet(key, f"{len(found)} of {counted(complete.files, 'file')} {path} are there")
        if len(found) > complete.files:
            raise Permanent(
                f"{key}: there are {len(found)} files {path}, and {complete.files} are expected",
                remedy="Take away what is too much, or correct `complete.files`.",
            )
        return found

    def _matching(self, path: PurePosixPath) -> list[Expected]:
        if not WILDCARDS & set(path.name):
            size = self.storage.size(str(path))
            return [] if size is None else [Expected(str(path), size)]
        folder = _folder_of(path)
        return [
            Expected(entry.path, entry.size)
            for entry in self.storage.entries(folder)
            if entry.path.rpartition("/")[0] == folder and _matches(entry.path.rpartition("/")[2], path.name)
        ]

    def _listed(self, manifest: str, key: PartitionKey) -> list[Expected]:
        size = self.storage.size(manifest)
        text = None if size is None or size > _MOST_MANIFEST_BYTES else self.storage.get(manifest)
        if text is None and size is not None:
            raise Permanent(f"{key}: its manifest {manifest} has {size:,} bytes, which no manifest needs")
        if text is None:
            raise self._not_yet(key, f"its manifest {manifest} is not there")
        try:
            said = _MANIFEST.decode(text)
        except msgspec.ValidationError as error:
            raise Permanent(
                f"{key}: its manifest {manifest} cannot be read: {error}",
                remedy='It is a JSON list of names, or of {"name": …, "size": …, "sha256": …}.',
            ) from error
        except msgspec.DecodeError as error:  # into a folder it may just be written
            raise self._not_yet(key, f"its manifest {manifest} is not whole: {error}") from error
        files = said.files if isinstance(said, _Manifest) else said
        return [self._expected(each, manifest, key) for each in files]

    def _expected(self, listed: _Listed | str, manifest: str, key: PartitionKey) -> Expected:
        if isinstance(listed, str):
            listed = _Listed(listed)
        name = PurePosixPath(listed.name)
        if name.is_absolute() or ".." in name.parts or not name.parts:
            raise Permanent(f"{key}: its manifest {manifest} lists {listed.name!r}, which is not beside it")
        path = _beside(PurePosixPath(manifest), str(name), deep=True)
        size = self.storage.size(path)
        if size is None or listed.size not in (None, size):
            is_there = "is not there" if size is None else f"has {size:,} bytes, not {listed.size:,}"
            raise self._not_yet(key, f"{path} {is_there}, though its manifest is there")
        return Expected(path, size, listed.sha256, listed.md5)

    def _not_yet(self, key: PartitionKey, why: str) -> Transient:
        return Transient(f"{key} is not complete yet: {why}", retry_after=self.ask_again_seconds)


def _beside(path: PurePosixPath, name: str, *, deep: bool = False) -> str:
    """Return where a file is that is named beside another; a name with a slash is below the URL."""
    folder = _folder_of(path)
    return name if not folder or ("/" in name and not deep) else f"{folder}/{name}"


def _folder_of(path: PurePosixPath) -> str:
    """Return the folder that a file is in; nothing for the top."""
    return "/".join(path.parent.parts)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (not name.startswith(_HIDDEN) or pattern.startswith(name[0]))
