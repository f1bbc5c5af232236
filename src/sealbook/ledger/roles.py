"""Group roles on PostgreSQL: each kind of worker gets what it needs and no more (R-STATE-2)."""

from __future__ import annotations

from sqlalchemy import Connection, text

from sealbook.errors import ConfigError
from sealbook.ledger.db import schema
from sealbook.ledger.db.engine import Database
from sealbook.ledger.states.tables import JUDGED, OVERRIDDEN
from sealbook.model.keys import check_name

_READ = {
    table: ["SELECT"]
    for table in (
        "alembic_version",
        "partition_state",
        "attempt",
        "validator",
        "rollback",
        "run_head",
        "run_event",
        "retired_run",
        "projection",
        "run_snapshot",
        "contract",
        "contract_in_force",
        "pointer",
        "load_record",
        "cut",
        "removal",
        "authority_change",
        "warehouse_version",
        "alert",
        "alert_notice",
    )
}
# Whoever appends events also takes them into the projections, so that no daemon is needed.
_APPEND = _READ | {
    "FUNCTION run_event_append": ["EXECUTE"],
    "FUNCTION run_event_lock": ["EXECUTE"],
    "lease": ["SELECT", "INSERT", "UPDATE"],
    "newest_run": ["SELECT", "UPDATE (run_id)"],
    "projection": ["SELECT", "INSERT", "UPDATE"],
    "run_snapshot": ["SELECT", "INSERT", "UPDATE"],
}

RIGHTS: dict[str, dict[str, list[str]]] = {
    "consumer": _READ,
    "extractor": _APPEND,
    "loader": _APPEND
    | {
        "pointer": ["SELECT", "INSERT", "UPDATE (valid_to, closed_at)"],
        "load_record": ["SELECT", "INSERT", "UPDATE (copy, part_digests)"],
        "warehouse_version": ["SELECT", "UPDATE (version, changed_at)"],
        "cut": ["SELECT", "INSERT", "DELETE"],
        "removal": ["SELECT", "INSERT", "UPDATE (copy, condemned_at, removed_at)"],
        "authority_change": ["SELECT", "DELETE"],
    },
    "validator": _APPEND
    | {
        "partition_state": ["SELECT", "INSERT", f"UPDATE ({', '.join(JUDGED)})"],
        "attempt": ["SELECT", "INSERT"],
        "validator": ["SELECT", "INSERT"],
        "authority_change": ["SELECT", "INSERT"],  # by the trigger that notes what is to be loaded
        "contract": ["SELECT", "INSERT"],
        "contract_in_force": ["SELECT", "INSERT"],
    },
    "control": _APPEND
    | {
        "partition_state": ["SELECT", f"UPDATE ({', '.join(OVERRIDDEN)})"],
        "override_log": ["SELECT", "INSERT"],
        "rollback": ["SELECT", "INSERT"],
        "authority_change": ["SELECT", "INSERT"],
        "pointer": ["SELECT", "INSERT", "UPDATE (valid_to, closed_at)"],  # a rollback takes effect at once
        "warehouse_version": ["SELECT", "UPDATE (version, changed_at)"],
        "retired_run": ["SELECT", "INSERT"],
        "alert": ["SELECT", "INSERT", "UPDATE (resolved_at)"],
        "alert_notice": ["SELECT", "INSERT", "UPDATE (sent_at)"],
        "projection": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "run_snapshot": ["SELECT", "INSERT", "UPDATE", "DELETE"],
    },
}
"""What each role may do, by table or function. Nobody may rewrite an attempt or a log, or delete from one.

Projections can be made anew: control may rebuild them. A loader may drop cuts, but no load
record. It puts its batches into temporary tables, which everybody may unless the database says otherwise.
"""

# Where the tables are, which need not be where the present user's new tables would go.
_NAMESPACE = text(
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE pg_class.oid = 'partition_state'::regclass"
)


def grant_roles(database: Database, prefix: str = "sealbook_") -> list[str]:
    """Create the group roles where they are missing, set exactly their rights, and return their names."""
    if database.dialect != "postgresql":
        raise ConfigError(
            f"{database} has no roles",
            remedy="Roles need PostgreSQL; a SQLite ledger is guarded by the rights on its file.",
        )
    roles = {f"{prefix}{name}": rights for name, rights in RIGHTS.items()}
    for role in roles:
        check_name("role", role)
    schema.check_version(database)
    database.write(lambda connection: _grant(connection, roles))
    return list(roles)


def _grant(connection: Connection, roles: dict[str, dict[str, list[str]]]) -> None:
    schema.wait_for_turn(connection)
    namespace = connection.execute(_NAMESPACE).scalar_one()
    quote = connection.dialect.identifier_preparer.quote
    existing = set(connection.execute(text("SELECT rolname FROM pg_roles")).scalars())
    for name, rights in roles.items():
        role = quote(name)
        if name not in existing:
            connection.exec_driver_sql(f"CREATE ROLE {role} NOLOGIN")
        for kind in ("TABLES", "FUNCTIONS"):
            connection.exec_driver_sql(f"REVOKE ALL ON ALL {kind} IN SCHEMA {quote(namespace)} FROM {role}")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {quote(namespace)} TO {role}")
        for thing, privileges in rights.items():
            connection.exec_driver_sql(f"GRANT {', '.join(privileges)} ON {thing} TO {role}")
