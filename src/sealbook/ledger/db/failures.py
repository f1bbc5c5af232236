"""What went wrong with a database, as errors of Sealbook's: the one place that translates a driver's."""

from __future__ import annotations

import sqlite3

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


def translate(error: DBAPIError, database: str, *, is_refused: bool, is_operational: bool) -> SealbookError:
    """Say what a driver's error means, by its code.

    PostgreSQL's driver has none for a connection that was not made or was lost: `is_refused` if the server
    answers and would not have us, `is_operational` if it is no statement of ours that is wrong.
    """
    cause = str(error.orig).strip()
    if sqlite_code(error) is not None:
        return _of_sqlite(error, database, cause)
    match sqlstate(error):
        case "42501":  # insufficient_privilege
            return Permanent(
                f"{database} refused: {cause}",
                remedy="Connect as a user with the right role; `sealbook ledger grant` creates the roles.",
            )
        case "25006":  # read_only_sql_transaction
            return Unwritable(
                f"{database} cannot be written: {cause}",
                remedy="Connect to a server that is no standby, without default_transaction_read_only.",
            )
        case "53100":  # disk_full
            return Unwritable(
                f"{database} cannot be written: {cause}",
                remedy="Make room on the server's disk; then run the same command again.",
            )
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


def _of_sqlite(error: DBAPIError, database: str, cause: str) -> SealbookError:
    match sqlite_code(error):
        case sqlite3.SQLITE_CANTOPEN:
            return ConfigError(
                f"{database} cannot be opened: {cause}",
                remedy="Name a file that exists or can be created, in a folder that can be written to.",
            )
        case sqlite3.SQLITE_NOTADB:
            return ConfigError(f"{database} is not a SQLite database", remedy="Name another file.")
        case sqlite3.SQLITE_READONLY:
            return Unwritable(
                f"{database} cannot be written: {cause}",
                remedy="Make the file and its folder writable; then run the same command again.",
            )
        case sqlite3.SQLITE_FULL:
            return Unwritable(
                f"{database} cannot be written: {cause}",
                remedy="Make room in its folder; then run the same command again.",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Transient(
                f"{database} is in use by another writer, which does not end: {cause}",
                remedy="End the process that holds the file, then try again.",
            )
        case sqlite3.SQLITE_IOERR:
            kind = getattr(error.orig, "sqlite_errorname", "")
            return Transient(
                f"the disk failed under {database}: {cause} ({kind})",
                remedy="Check that the disk has room and is sound, then try again.",
            )
        case sqlite3.SQLITE_CORRUPT:
            return Corrupt(f"{database} is damaged: {cause}", remedy="Restore the file from a backup.")
    return Permanent(f"{database} refused: {cause}")
