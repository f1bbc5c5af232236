"""What went wrong with a database, as errors of Sealbook's: the one place that translates a driver's."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from sealbook.errors import (
    ConfigError,
    Corrupt,
    NotMigrated,
    Permanent,
    SealbookError,
    Transient,
    Unwritable,
)

_MAKE_WRITABLE = "Make room in its folder, or make it writable"
_CONNECT_TO_WRITE = "Connect to a server that is no standby, and without default_transaction_read_only"
_SHARED_MEMORY_BYTES = 32_768
"""What SQLite makes beside a file that it opens, even to read: without room for it, all fails."""


def translate(
    error: DBAPIError, database: str, file: str | None, *, is_refused: bool, is_operational: bool
) -> SealbookError:
    """Say what a driver's error means, by its code and, of SQLite, by the place that the file is in.

    PostgreSQL's driver has none for a connection that was not made or was lost: `is_refused` if the server
    answers and would not have us, `is_operational` if it is no statement of ours that is wrong.
    """
    cause = str(error.orig).strip()
    if sqlite_code(error) is not None:
        return _of_sqlite(error, database, cause, _why_unwritable(file))
    match sqlstate(error):
        case "42501":  # insufficient_privilege
            return Permanent(
                f"{database} refused: {cause}",
                remedy="Connect as a user with the right role; `sealbook ledger grant` creates the roles.",
            )
        case "25006":  # read_only_sql_transaction
            return _unwritable(database, cause, _CONNECT_TO_WRITE)
        case "53100":  # disk_full
            return _unwritable(database, cause, "Make room on the server's disk")
        case "42P01" | "3F000":  # undefined_table, invalid_schema_name
            return NotMigrated(f"{database} lacks a table: {cause}", remedy="Run `sealbook ledger migrate`.")
    if is_refused:
        return ConfigError(
            f"{database} answered, and refused the connection: {cause.rpartition('FATAL:')[2].strip()}",
            remedy="Check the user, the password and the database in the ledger's URL.",
        )
    if is_operational:
        return Transient(
            f"{database} did not answer: {cause}",
            remedy="Check the ledger's URL and that the database runs, then try again.",
        )
    return Permanent(f"{database} refused: {cause}")


def sqlstate(error: DBAPIError) -> str | None:
    """Return PostgreSQL's code of an error, if it has one."""
    return getattr(error.orig, "sqlstate", None)


def sqlite_code(error: Exception) -> int | None:
    """Return SQLite's code of an error, without its extension; None of any other error."""
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _of_sqlite(error: DBAPIError, database: str, cause: str, why: str | None) -> SealbookError:
    match sqlite_code(error):
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_READONLY:
            return _unwritable(database, why or cause, _MAKE_WRITABLE)
        # On a full or read-only disk, also these: it depends on which of its files SQLite is at.
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR if why is not None:
            return _unwritable(database, why, _MAKE_WRITABLE)
        case sqlite3.SQLITE_CANTOPEN:
            return ConfigError(
                f"{database} cannot be opened: {cause}",
                remedy="Name a file that exists or can be created, in a folder that can be written to.",
            )
        case sqlite3.SQLITE_IOERR:
            kind = getattr(error.orig, "sqlite_errorname", "")
            return Transient(
                f"the disk failed under {database}: {cause} ({kind})",
                remedy="Check that the disk is sound, then try again.",
            )
        case sqlite3.SQLITE_NOTADB:
            return ConfigError(f"{database} is not a SQLite database", remedy="Name another file.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Transient(
                f"{database} is in use by another writer, which does not end: {cause}",
                remedy="End the process that holds the file, then try again.",
            )
        case sqlite3.SQLITE_CORRUPT:
            return Corrupt(f"{database} is damaged: {cause}", remedy="Restore the file from a backup.")
    return Permanent(f"{database} refused: {cause}")


def _unwritable(database: str, why: str, way_out: str) -> Unwritable:
    return Unwritable(
        f"{database} cannot be written: {why}", remedy=f"{way_out}; then run the same command again."
    )


def _why_unwritable(file: str | None) -> str | None:
    """Say why nothing can be written beside a file, if its disk is read-only or full."""
    try:
        disk = os.statvfs(Path(file or "").parent)
    except OSError:  # no such folder: that is another error
        return None
    if disk.f_flag & os.ST_RDONLY:
        return str(OSError(errno.EROFS, os.strerror(errno.EROFS)))
    if disk.f_bavail * disk.f_frsize < _SHARED_MEMORY_BYTES:
        return str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    return None
