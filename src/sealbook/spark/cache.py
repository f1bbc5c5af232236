"""The folder in which Sealbook keeps what it can make again: archives for Java, and for executors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_KEPT = 5
_LONGEST_SECONDS_TO_MAKE = 600


def cache_folder() -> Path:
    """Return the folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sealbook"


def is_being_made(file: Path) -> bool:
    """Say whether another process may be writing a draft of the file."""
    return any(not _is_old(draft) for draft in file.parent.glob(f"{file.stem}.*.draft"))


@contextmanager
def draft_of(file: Path) -> Iterator[Path]:
    """Give a name to write to, which becomes the file's when the block ends; an empty draft does not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.draft")
    draft.touch()
    try:
        yield draft
        if draft.stat().st_size:
            draft.rename(file)
    finally:
        draft.unlink(missing_ok=True)


def remove_unused(kind: str, suffix: str) -> None:
    """Keep the files of a kind that were used last, and no draft that nobody finished."""
    files = sorted(cache_folder().glob(f"{kind}-*{suffix}"), key=_modified, reverse=True)
    drafts = cache_folder().glob(f"{kind}-*.draft")
    for each in (*files[_KEPT:], *filter(_is_old, drafts)):
        each.unlink(missing_ok=True)


def _is_old(draft: Path) -> bool:
    return time.time() - _modified(draft) > _LONGEST_SECONDS_TO_MAKE


def _modified(file: Path) -> float:
    with suppress(FileNotFoundError):  # another process has just removed it
        return file.stat().st_mtime
    return 0.0
