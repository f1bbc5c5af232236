"""Places that take nothing for a while: really full or read-only where this machine lets us mount one."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

from sqlalchemy import Connection, Engine, event

Way = Literal["full", "read-only"]

_ERRNO = {"full": errno.ENOSPC, "read-only": errno.EROFS}
_PRAGMA = {"full": "max_page_count = 1", "read-only": "query_only = ON"}
_BLOCK = 4096


class Mounted:
    """A file system of its own, in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def refusing(self, way: Way, room: int = 0) -> Iterator[None]:
        """Take nothing while the block lasts; if it is full, but for so many bytes."""
        if way == "read-only":
            _mount("remount,ro", self._folder)
            yield
            _mount("remount,rw", self._folder)
            return
        filler = self._folder / "filler"
        there = os.statvfs(self._folder)
        filler.write_bytes(bytes(there.f_bavail * there.f_frsize - room))
        yield
        filler.unlink()


class Pretended:
    """A folder where this process gets the errors of such a place; SQLite's are its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def refusing(self, way: Way, room: int = 0) -> Iterator[None]:
        """Take nothing while the block lasts."""
        del room
        number, statvfs = _ERRNO[way], os.statvfs

        def answer(path: Any) -> Any:
            if Path(path).is_relative_to(self._folder):
                raise OSError(number, os.strerror(number), str(path))
            return statvfs(path)

        def begin(connection: Connection) -> None:
            if Path(str(connection.engine.url.database)).is_relative_to(self._folder):
                connection.exec_driver_sql(f"PRAGMA {_PRAGMA[way]}")

        event.listen(Engine, "begin", begin)
        try:
            with patch("os.statvfs", answer):
                yield
        finally:
            event.remove(Engine, "begin", begin)


Place = Mounted | Pretended


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Make a folder that can be made to take nothing."""
    folder.mkdir()
    if not can_mount():
        yield Pretended(folder)
        return
    _mount("size=4m", folder)
    try:
        yield Mounted(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@cache
def can_mount() -> bool:
    """Say whether this process may mount: root outside a container mostly may, nobody else."""
    with TemporaryDirectory() as folder:
        try:
            _mount("size=64k", Path(folder))
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def _mount(options: str, folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True, capture_output=True)
