"""The revision of the ledger's tables: what it is, what it must be, and how it gets there."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from sqlalchemy import Connection, inspect, text

from sealbook.errors import NotMigrated
from sealbook.ledger.db.engine import Database

HEAD = "0019"
"""The revision that this code needs: the newest in migrations/versions."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_SCHEMA_LOCK = 0x5EA1B00C  # an advisory lock of ours on PostgreSQL
_ONE_THREAD = Lock()  # Alembic keeps what it is doing in module globals


def bring_to_head(database: Database) -> tuple[str | None, str]:
    """Migrate in one transaction unless it is done already, and return the revision before and after."""
    with database.read() as connection:
        if revision(connection) == HEAD:
            return HEAD, HEAD
    return database.write(_upgrade)


def check_version(database: Database) -> None:
    """Raise NotMigrated unless the tables are at HEAD."""
    with database.read() as connection:
        found = revision(connection)
    if found == HEAD:
        return
    if found is None:
        raise NotMigrated(f"{database} has no ledger yet", remedy="Run `sealbook ledger migrate`.")
    if found in known_revisions():
        raise NotMigrated(
            f"{database} is at revision {found}, and this Sealbook needs {HEAD}",
            remedy="Run `sealbook ledger migrate`.",
        )
    raise _from_the_future(str(database), found)


def revision(connection: Connection) -> str | None:
    """Return the revision that the tables are at; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def wait_for_turn(connection: Connection) -> None:
    """Let one transaction at a time change tables, rights or contracts; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _SCHEMA_LOCK})


def known_revisions() -> set[str]:
    """Return every revision that this code can migrate from."""
    return {path.name.split("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*_*.py")}


def _upgrade(connection: Connection) -> tuple[str | None, str]:
    # Alembic takes longer to import than most commands take to run.
    from alembic import command
    from alembic.config import Config

    wait_for_turn(connection)
    before = revision(connection)
    if before == HEAD:
        return before, HEAD
    if before is not None and before not in known_revisions():
        raise _from_the_future("the ledger", before)
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    with _ONE_THREAD:
        command.upgrade(config, HEAD)
    return before, HEAD


def _from_the_future(where: str, found: str) -> NotMigrated:
    return NotMigrated(
        f"{where} is at revision {found}, which this Sealbook does not know: a newer one migrated it",
        remedy="Upgrade Sealbook.",
    )
