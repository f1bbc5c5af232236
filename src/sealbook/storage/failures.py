"""What went wrong with a storage, as errors of Sealbook's: the one place that translates them."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from sealbook.errors import NotFound, Permanent, SealbookError, Transient, Unwritable

_log = logging.getLogger(__name__)
_URL_QUERY = re.compile(r"(?<=://)([^\s?]*)\?\S*")
_XML = re.compile(r"<Code>([^<]*)</Code>\s*(?:<Message>([^<]*)</Message>)?")
_STATUS = re.compile(r"status code: (\d{3})")
_SUMMARY = 400
_TAKES_NOTHING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})


class Writer(Protocol):
    """Where the chunks of a staged object go."""

    def write(self, chunk: bytes, /) -> object:
        """Take the next chunk."""


class TranslatedWriter:
    """A writer whose errors name the path and are Sealbook's own."""

    def __init__(self, writer: Writer, where: str) -> None:
        self._writer = writer
        self._where = where

    def write(self, chunk: bytes, /) -> None:
        """Take the next chunk."""
        with translated(self._where):
            self._writer.write(chunk)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn an error of the storage into one of Sealbook's, by its type or code alone."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(
            f"{where} cannot be found: {_summary(error)}",
            remedy="Check that its bucket or folder exists.",
        ) from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise _refused(where, error) from error
    except (InvalidPathError, NotSupportedError) as error:
        raise Permanent(f"the storage cannot serve {where}: {_summary(error)}") from error
    except (BaseError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _TAKES_NOTHING:
            raise unwritable(where, error) from error
        if has_status(error, 401, 403):  # a writer of obstore has no types for its errors
            raise _refused(where, error) from error
        raise Transient(
            f"the storage failed at {where}: {_summary(error)}",
            remedy="Try again; if it goes on, check that the storage can be reached and has room.",
        ) from error


def unwritable(where: str, error: OSError) -> Unwritable:
    """Say that a place takes nothing, and why."""
    return Unwritable(
        f"{where} cannot be written: {_summary(error)}",
        remedy="Make room, or make it writable; then run the same command again.",
    )


def _refused(where: str, error: Exception) -> Permanent:
    return Permanent(
        f"the storage refused access to {where}: {_summary(error)}",
        remedy="Check the credentials in the environment and what they permit.",
    )


def is_missing_bucket(error: Exception) -> bool:
    """Say whether it is the bucket that is missing, by the storage's own code, and not just an object."""
    found = _XML.search(str(error))
    return found is not None and found[1] in _NO_BUCKET


def has_status(error: Exception, *statuses: int) -> bool:
    """Say whether a server answered with one of these, where obstore has no type of error for it."""
    found = _STATUS.search(str(error))
    return found is not None and int(found[1]) in statuses


@contextmanager
def reported(consequence: str) -> Iterator[None]:
    """Tidy up in the block: if that fails, log it, so that it does not hide what the caller must hear of."""
    try:
        yield
    except SealbookError as error:
        _log.warning("%s: %s", consequence, error)


def _summary(error: Exception) -> str:
    """Shorten a report for people: what a server's code says, or the first paragraph.

    Without the query of a URL, which may be signed.
    """
    text = " ".join(str(error).partition("\n\n")[0].split())
    if said := _XML.search(text):
        return ": ".join(filter(None, said.groups()))
    return _URL_QUERY.sub(r"\1", text)[:_SUMMARY] or type(error).__name__
