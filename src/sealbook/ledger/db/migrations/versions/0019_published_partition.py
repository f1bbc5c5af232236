"""A view of what consumers read, for tools that ask the database itself."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"

_TIME = {
    "postgresql": "pointer.published_at",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', pointer.published_at / 1000000.0, 'unixepoch')",
}
_KEY = ("source", "customer_id", "query_name", "logical_date")


def upgrade() -> None:
    """Create the view: one row for each partition that can be read now, with the run that is read of it."""
    dialect = op.get_bind().dialect.name
    op.execute(
        f"""
        CREATE VIEW published_partition AS
        SELECT {", ".join(f"pointer.{name}" for name in _KEY)},
               pointer.run_id, pointer.schema_version, load_record.record_count,
               {_TIME[dialect]} AS published_at,
               NOT (pointer.run_id = state.current_run_id
                    AND pointer.schema_version = state.schema_version) AS behind
        FROM pointer
        JOIN partition_state AS state ON {_same("state")}
        JOIN load_record ON {_same("load_record")}
             AND load_record.run_id = pointer.run_id AND load_record.schema_version = pointer.schema_version
        WHERE pointer.valid_to IS NULL
          AND state.status = 'success'
          AND (pointer.run_id = state.current_run_id
               OR 'accepted' = (SELECT attempt.outcome FROM attempt
                                WHERE {_same("attempt")} AND attempt.run_id = pointer.run_id
                                ORDER BY attempt.attempt DESC LIMIT 1))
        """
    )


def _same(table: str) -> str:
    return " AND ".join(f"{table}.{name} = pointer.{name}" for name in _KEY)
