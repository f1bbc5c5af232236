"""On PostgreSQL a role appends only the kinds of event that are its own."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

FUNCTION = Path(__file__).parents[1] / "functions" / f"{revision}_run_event_append.sql"


def upgrade() -> None:
    """Put the check in front of the function that appends; who could call that, can call the check."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    op.execute("ALTER FUNCTION run_event_append RENAME TO run_event_append_unchecked")
    connection.exec_driver_sql(FUNCTION.read_text(encoding="utf-8"))
    op.execute(f"ALTER FUNCTION run_event_append SECURITY DEFINER SET search_path = {schema}, pg_temp")
    op.execute("REVOKE EXECUTE ON FUNCTION run_event_append FROM PUBLIC")
    granted = connection.execute(
        sa.text(
            "SELECT DISTINCT quote_ident(rolname) FROM pg_proc CROSS JOIN aclexplode(proacl) AS acl"
            " JOIN pg_roles ON pg_roles.oid = acl.grantee"
            " WHERE pg_proc.oid = 'run_event_append_unchecked'::regproc AND acl.grantee <> proowner"
        )
    )
    for role in granted.scalars().all():
        op.execute(f"GRANT EXECUTE ON FUNCTION run_event_append TO {role}")
        op.execute(f"REVOKE EXECUTE ON FUNCTION run_event_append_unchecked FROM {role}")
