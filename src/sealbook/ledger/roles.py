"""Group roles on PostgreSQL: each kind of worker gets what it needs and no more (R-STATE-2)."""

from __future__ import annotations

from sqlalchemy import Connection, text

from sealbook.errors import ConfigError, InvalidInput
from sealbook.ledger.engine import Database
from sealbook.ledger.tables import KEY, partition_state
from sealbook.model.keys import check_name

_READ_ALL = {
    "alembic_version": ["SELECT"],
    "partition_state": ["SELECT"],
    "attempt": ["SELECT"],
    "override_log": ["SELECT"],
}
_JUDGED = ", ".join(column.name for column in partition_state.c if column.name not in KEY)
_OVERRIDDEN = ", ".join(
    column.name for column in partition_state.c if column.name not in (*KEY, "attempt_count")
)

RIGHTS: dict[str, dict[str, list[str]]] = {
    "consumer": _READ_ALL,
    "extractor": _READ_ALL,
    "loader": _READ_ALL,
    "validator": _READ_ALL
    | {
        "partition_state": ["SELECT", "INSERT", f"UPDATE ({_JUDGED})"],
        "attempt": ["SELECT", "INSERT"],
    },
    "control": _READ_ALL
    | {
        "partition_state": ["SELECT", f"UPDATE ({_OVERRIDDEN})"],
        "override_log": ["SELECT", "INSERT"],
    },
}
"""What each role may do, by table. Nobody may delete; control may not count attempts."""


def grant_roles(database: Database, prefix: str = "sealbook_") -> list[str]:
    """Create the group roles where they are missing, set exactly their rights, and return their names."""
    if database.dialect != "postgresql":
        raise ConfigError(
            f"{database} has no roles",
            remedy="Roles need PostgreSQL; a SQLite ledger is guarded by the rights on its file.",
        )
    if prefix:
        check_name("prefix", prefix)
    return database.write(lambda connection: _grant(connection, prefix))


def _grant(connection: Connection, prefix: str) -> list[str]:
    schema = connection.execute(text("SELECT current_schema()")).scalar()
    if schema is None:
        raise InvalidInput.of("search_path", schema, "a schema that exists")
    quote = connection.dialect.identifier_preparer.quote
    existing = set(connection.execute(text("SELECT rolname FROM pg_roles")).scalars())
    roles = []
    for name, rights in RIGHTS.items():
        role = quote(prefix + name)
        if prefix + name not in existing:
            connection.exec_driver_sql(f"CREATE ROLE {role} NOLOGIN")
        connection.exec_driver_sql(f"REVOKE ALL ON ALL TABLES IN SCHEMA {quote(schema)} FROM {role}")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {quote(schema)} TO {role}")
        for table, privileges in rights.items():
            connection.exec_driver_sql(f"GRANT {', '.join(privileges)} ON {quote(table)} TO {role}")
        roles.append(prefix + name)
    return roles
