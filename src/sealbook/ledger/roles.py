"""Group roles on PostgreSQL: each kind of worker gets what it needs and no more (R-STATE-2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import Connection, text

from sealbook.errors import ConfigError
from sealbook.ledger.db import schema
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.types import json_text
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
        "newest_run",
        "projection",
        "run_snapshot",
        "contract",
        "contract_in_force",
        "status_series",
        "partition_status",
        "run_scope",
        "pointer",
        "load_record",
        "published_partition",
        "cut",
        "consumer",
        "removal",
        "drift",
        "authority_change",
        "warehouse_version",
        "alert",
        "alert_notice",
        "account_sighting",
        "account_refresh",
        "lease",
        "work",
        "lane_pass",
        "flow_pass",
        "pause",
        "spending",
        "reservation",
        "rate_share",
        "plan",
    )
}
# Whoever appends events also takes them into the projections, so that no daemon is needed; and what is to be
# done about partitions follows what is said of them.
_APPEND = _READ | {
    "FUNCTION run_event_append": ["EXECUTE"],
    "FUNCTION run_event_lock": ["EXECUTE"],
    "lease": ["SELECT", "INSERT", "UPDATE"],
    "newest_run": ["SELECT", "UPDATE (run_id)"],
    "projection": ["SELECT", "INSERT", "UPDATE"],
    "run_snapshot": ["SELECT", "INSERT", "UPDATE"],
    "status_series": ["SELECT", "INSERT"],
    "partition_status": ["SELECT", "INSERT", "UPDATE"],
    "run_scope": ["SELECT", "INSERT"],
    "work": ["SELECT", "INSERT", "UPDATE", "DELETE"],
    "flow_pass": ["SELECT", "INSERT"],
    "pause": ["SELECT", "INSERT", "DELETE"],
}

# A consumer may say how far it has come, and nothing else; for others, control may.
_FOLLOW = {"consumer": ["SELECT", "INSERT", "UPDATE (version, token, advanced_at, holds)"]}

RIGHTS: dict[str, dict[str, list[str]]] = {
    "consumer": _READ | _FOLLOW,
    "viewer": _READ | {"override_log": ["SELECT"]},
    "extractor": _APPEND,
    "loader": _APPEND
    | {
        "pointer": ["SELECT", "INSERT", "UPDATE (valid_to, closed_at)"],
        "load_record": ["SELECT", "INSERT", "UPDATE (copy, part_digests)"],
        "warehouse_version": ["SELECT", "UPDATE (version, changed_at)"],
        "cut": ["SELECT", "INSERT", "DELETE"],
        "removal": ["SELECT", "INSERT", "UPDATE (copy, condemned_at, removed_at)"],
        "drift": ["SELECT", "INSERT"],
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
        "consumer": [*_FOLLOW["consumer"], "DELETE"],
        "partition_state": ["SELECT", f"UPDATE ({', '.join(OVERRIDDEN)})"],
        "override_log": ["SELECT", "INSERT"],
        "rollback": ["SELECT", "INSERT"],
        "authority_change": ["SELECT", "INSERT"],
        "pointer": ["SELECT", "INSERT", "UPDATE (valid_to, closed_at)"],  # a rollback takes effect at once
        "warehouse_version": ["SELECT", "UPDATE (version, changed_at)"],
        "retired_run": ["SELECT", "INSERT"],
        "alert": ["SELECT", "INSERT", "UPDATE (resolved_at)", "DELETE"],
        "alert_notice": ["SELECT", "INSERT", "UPDATE (sent_at)", "DELETE"],
        "account_sighting": ["SELECT", "INSERT"],
        "account_refresh": ["SELECT", "INSERT", "UPDATE"],
        "projection": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "run_snapshot": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "status_series": ["SELECT", "INSERT", "DELETE"],
        "partition_status": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "lane_pass": ["SELECT", "UPDATE"],
        "flow_pass": ["SELECT", "INSERT", "UPDATE (pass)"],
        "spending": ["SELECT", "INSERT", "UPDATE (requests)", "DELETE"],
        "reservation": ["SELECT", "INSERT", "UPDATE (expires_at)", "DELETE"],
        "rate_share": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "plan": ["SELECT", "INSERT", "UPDATE (state, carried_out_at, ended_at)", "DELETE"],
        "cut": ["SELECT", "INSERT", "DELETE"],
    },
}
"""What each role may do, by table or function. Nobody may rewrite an attempt or a log, or delete from one.

Only control shares work out, and plans it. Projections can be made anew: control may rebuild them. A loader
may drop cuts, but no load record. It puts its batches into temporary tables, which everybody may unless the
database says otherwise. A viewer, who looks at the console, sees what was done by hand too; people act there
as control, and pin cuts.
"""

# Where the tables are, which need not be where the present user's new tables would go.
_NAMESPACE = text(
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE pg_class.oid = 'partition_state'::regclass"
)


_GRANTED = text(
    "SELECT rolname FROM pg_roles WHERE NOT rolcanlogin AND NOT rolsuper"
    " AND has_table_privilege(oid, 'partition_state', 'SELECT') ORDER BY rolname"
)
_MAY_TAKE = text("SELECT pg_has_role(current_user, CAST(:role AS name), 'MEMBER')")
# Rights of a user's groups count as the user's own.
_LACKING = text(
    """
    SELECT wanted.thing, wanted.privilege, wanted.of_column
    FROM json_to_recordset(:wanted) AS wanted (thing text, privilege text, of_column text)
    WHERE NOT CASE
        WHEN wanted.thing LIKE 'FUNCTION %' THEN has_function_privilege(:role, (
            SELECT oid FROM pg_proc
            WHERE proname = substr(wanted.thing, 10) AND pg_function_is_visible(oid)
        ), wanted.privilege)
        WHEN wanted.of_column IS NULL THEN has_table_privilege(:role, wanted.thing, wanted.privilege)
        ELSE has_column_privilege(:role, wanted.thing, wanted.of_column, wanted.privilege)
    END
    """
)


def granted_roles(connection: Connection) -> dict[str, str]:
    """Return the group roles that have rights in this ledger, each with the kind of worker it is for."""
    found = connection.execute(_GRANTED).scalars()
    return {role: name for role in found for name in RIGHTS if role.endswith(name)}


def role_to_take(connection: Connection, kind: str) -> str | None:
    """Return the group role of a kind of worker that the present user may take on; None if there is none."""
    for role, name in granted_roles(connection).items():
        if name == kind and connection.execute(_MAY_TAKE, {"role": role}).scalar_one():
            return role
    return None


def lacking(connection: Connection, role: str) -> dict[str, list[str]]:
    """Return, for each kind of worker, which of its rights a user or a role does not have."""
    wanted = sorted({right for rights in RIGHTS.values() for right in _single(rights)}, key=str)
    names = ("thing", "privilege", "of_column")
    given = json_text([dict(zip(names, right, strict=True)) for right in wanted])
    missing = {tuple(row) for row in connection.execute(_LACKING, {"wanted": given, "role": role})}
    return {
        name: [_shown(right) for right in _single(rights) if right in missing]
        for name, rights in RIGHTS.items()
    }


_Right = tuple[str, str, str | None]
"""A table or function, a privilege, and the column that it is for, if it is for one."""


def _single(rights: dict[str, list[str]]) -> Iterator[_Right]:
    for thing, privileges in rights.items():
        for privilege in privileges:
            kind, _, columns = privilege.partition(" (")
            for column in columns.rstrip(")").split(", "):
                yield thing, kind, column or None


def _shown(right: _Right) -> str:
    thing, privilege, column = right
    return f"{privilege} ({column}) ON {thing}" if column else f"{privilege} ON {thing}"


def url_in_role(url: str, kind: str, role: str | None = None) -> str:
    """Return the URL by which a ledger is opened with the rights of a kind of worker, and no more.

    The role is the one given, or else the group role of that kind that the user may take on. Where there is
    none, and on SQLite, it is the same URL: the rights are those of the user, or of the file.
    """
    with closing(Database(url, read_only=True)) as database:
        if database.dialect != "postgresql":
            if role is not None:
                raise _without_roles(database)
            return url
        if role is None:
            with database.read() as connection:
                role = role_to_take(connection, kind)
        if role is None:
            return url
        check_name("role", role)
        options = f"{database.url.query.get('options', '')} -c role={role}".strip()
        changed = database.url.update_query_dict({"options": options})
        return changed.render_as_string(hide_password=False)


def _without_roles(database: Database) -> ConfigError:
    return ConfigError(
        f"{database} has no roles",
        remedy="Roles need PostgreSQL; a SQLite ledger is guarded by the rights on its file.",
    )


def grant_roles(database: Database, prefix: str = "sealbook_") -> list[str]:
    """Create the group roles where they are missing, set exactly their rights, and return their names."""
    if database.dialect != "postgresql":
        raise _without_roles(database)
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
