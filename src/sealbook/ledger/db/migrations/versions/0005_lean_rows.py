"""Rows say nothing twice: events name their run by number, attempts their checks by their validator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from sealbook.ledger.events.packing import pack
from sealbook.model.events import RunEvent

revision = "0005"
down_revision = "0004"

KEY = ("source", "customer_id", "query_name", "logical_date")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DIGEST = sa.LargeBinary().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

FUNCTIONS = Path(__file__).parents[1] / "functions"
NEVER = "events are never changed or deleted; retention removes whole runs"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PAGE = 5_000


def upgrade() -> None:
    """Make the tables anew beside the old ones, and carry every row over."""
    if op.get_bind().dialect.name == "postgresql":
        _renew_on_postgresql()
    else:
        _renew_on_sqlite()


def _renew_on_postgresql() -> None:
    connection = op.get_bind()
    last_position = connection.execute(sa.text(LAST_POSITION)).scalar()
    for table in ("run_head", "run_event", "attempt"):
        # A copy has no constraints, whose names would be in the way of those of the new table.
        op.execute(f"CREATE TEMPORARY TABLE {table}_old ON COMMIT DROP AS SELECT * FROM {table}")
        op.drop_table(table)
    _create_tables()
    op.execute("INSERT INTO run_head (run_id, last_seq) SELECT run_id, last_seq FROM run_head_old ORDER BY 1")
    _carry_over(connection)
    op.execute(f"SELECT setval('run_event_position_seq', {last_position or 1}, {last_position is not None})")
    for name in ("run_event_append", "run_event_delete", "retired_run_removes"):
        connection.exec_driver_sql((FUNCTIONS / f"{revision}_{name}.sql").read_text(encoding="utf-8"))
        # It acts with its owner's rights, so it looks names up in this ledger's schema only.
        schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
        op.execute(f"ALTER FUNCTION {name} SECURITY DEFINER SET search_path = {schema}, pg_temp")
    for statement in POSTGRESQL_GUARDS:
        op.execute(statement)


def _renew_on_sqlite() -> None:
    connection = op.get_bind()
    triggers: dict[str, str] = dict(connection.execute(sa.text(TRIGGERS)).all())
    for name in triggers:
        op.execute(f"DROP TRIGGER {name}")
    last_position = connection.execute(
        sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'run_event'")
    ).scalar()
    for table, index in (("run_event", "run_event_partition"), ("attempt", "attempt_once_a_run")):
        op.execute(f"DROP INDEX {index}")
        op.execute(f"ALTER TABLE {table} RENAME TO {table}_old")
    op.execute("DROP INDEX attempt_once_a_revalidation")
    _create_tables()
    op.execute(SQLITE_HEADS)
    _carry_over(connection)
    op.execute(f"UPDATE sqlite_sequence SET seq = {last_position or 0} WHERE name = 'run_event'")
    for table, sql in connection.execute(sa.text(TABLES)).all():
        _make_times_numbers(connection, table, sql)
    for statement in (triggers | SQLITE_GUARDS).values():
        op.execute(sa.text(statement))


def _create_tables() -> None:
    op.create_table(
        "run_head",
        sa.Column("number", sa.Integer, sa.Identity(always=True), nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="run_head_pkey"),
        sa.UniqueConstraint("run_id", name="run_head_run"),
    )
    op.create_table(
        "run_event",
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("run_number", sa.Integer, nullable=False),
        sa.Column("run_seq", sa.BigInteger, nullable=False),
        sa.Column("persisted_at", TIME, nullable=False),
        sa.Column("emitted_at", TIME),
        sa.Column("event_key", DIGEST, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("step_id", sa.Text),
        sa.Column("logical_attempt_id", sa.Text),
        sa.Column("plan_version", sa.Text),
        sa.Column("partition", NAME),
        sa.Column("event_data", sa.LargeBinary, nullable=False),
        sa.Column("rest", sa.LargeBinary),
        sa.PrimaryKeyConstraint("position", name="run_event_pkey"),
        sa.UniqueConstraint("run_number", "run_seq", name="run_event_seq"),
        sa.UniqueConstraint("event_key", name="run_event_key"),
        sa.CheckConstraint("run_seq >= 1", name="run_event_run_seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "validator",
        sa.Column("id", sa.Integer, sa.Identity(always=True), nullable=False),
        sa.Column("digest", NAME, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("checks", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="validator_pkey"),
        sa.UniqueConstraint("digest", name="validator_digest"),
    )
    op.create_table(
        "attempt",
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("validator_id", sa.Integer, nullable=False),
        sa.Column("judged_at", TIME, nullable=False),
        sa.Column("record_count", sa.BigInteger),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("schema_version", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("findings", DOCUMENT),
        sa.Column("revalidation_id", sa.Text),
        sa.PrimaryKeyConstraint(*KEY, "attempt", name="attempt_pkey"),
        sa.CheckConstraint("outcome IN ('accepted', 'rejected')", name="attempt_outcome"),
        sqlite_with_rowid=False,
    )


def _carry_over(connection: sa.Connection) -> None:
    """Fill the new tables from those set aside, and drop these; indexes are made once all rows are there."""
    runs = {
        run_id: number
        for number, run_id in connection.execute(sa.text("SELECT number, run_id FROM run_head"))
    }
    for page in _pages(connection, EVENTS):
        connection.execute(sa.insert(RUN_EVENT), [_event(row, runs[row["run_id"]]) for row in page])
    validators: dict[str, int] = {}
    for page in _pages(connection, ATTEMPTS):
        connection.execute(sa.insert(ATTEMPT), [_attempt(connection, row, validators) for row in page])
    for table in ("run_event_old", "attempt_old"):
        op.drop_table(table)
    _create_index("run_event_partition", "run_event", ["partition"], "partition IS NOT NULL")
    run = [*KEY, "run_id"]
    _create_index("attempt_once_a_run", "attempt", run, "revalidation_id IS NULL", unique=True)
    run.append("revalidation_id")
    _create_index("attempt_once_a_revalidation", "attempt", run, "revalidation_id IS NOT NULL", unique=True)


def _create_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    only = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=only, postgresql_where=only)


def _pages(connection: sa.Connection, query: str) -> Iterator[Sequence[sa.RowMapping]]:
    rows = connection.execute(sa.text(query), execution_options={"yield_per": PAGE})
    yield from rows.mappings().partitions()


def _event(row: sa.RowMapping, run_number: int) -> dict[str, Any]:
    """Return an event as the new log has it: nothing that follows from the rest of it."""
    fields = dict(row)
    position = fields.pop("position")
    for name in ("event_data", "engine_run_ref", "extra"):
        fields[name] = None if fields[name] is None else msgspec.json.decode(fields[name])
    fields["extra"] = fields["extra"] or {}
    event = RunEvent.restored(fields)
    key, digest, event_id = event.derived
    rest = {name: fields[name] for name in REST if fields[name] is not None}
    if not rest["extra"]:
        del rest["extra"]
    if event.idempotency_key != key:
        rest["idempotency_key"] = event.idempotency_key
    if event.event_id != event_id:
        rest["event_id"] = event.event_id
    step, partition = event.step_id, event.partition
    if partition and step and step.endswith(partition):
        step = step.removesuffix(partition) + "|"
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    return {
        "position": position,
        "run_number": run_number,
        "run_seq": event.run_seq,
        "persisted_at": _time(event.persisted_at),
        "emitted_at": None if event.emitted_at == event.persisted_at else _time(event.emitted_at),
        "event_key": digest[:32] if on_postgresql else bytes.fromhex(digest[:32]),
        "event_type": event.event_type,
        "step_id": step,
        "logical_attempt_id": event.logical_attempt_id,
        "plan_version": None if event.plan_version == "1" else event.plan_version,
        "partition": partition,
        "event_data": pack(event.event_data, event.run_id, partition),
        "rest": pack(rest) if rest else None,
    }


def _attempt(connection: sa.Connection, row: sa.RowMapping, validators: dict[str, int]) -> dict[str, Any]:
    """Return an attempt whose validator says what it checked; the validator gets its row if it has none."""
    values = dict(row)
    version, checks = values.pop("validator_version"), _decoded(values.pop("checks"))
    names = [[check["name"], check["severity"]] for check in checks]
    digest = sha256(msgspec.json.encode([version, names])).hexdigest()
    if digest not in validators:
        made = sa.insert(VALIDATOR).values(digest=digest, version=version, checks=names)
        validators[digest] = connection.execute(made.returning(VALIDATOR.c.id)).scalar_one()
    found = [[place, check] for place, check in enumerate(checks) if check | PLAIN != check]
    day = values["logical_date"]
    return values | {
        "logical_date": date.fromisoformat(day) if isinstance(day, str) else day,
        "judged_at": _time(values["judged_at"]),
        "validator_id": validators[digest],
        "findings": found or None,
    }


def _decoded(document: Any) -> Any:
    return msgspec.json.decode(document) if isinstance(document, str) else document


def _time(value: str | datetime | None) -> int | datetime | None:
    """Return a time as the database keeps it now: SQLite, in microseconds since 1970."""
    if isinstance(value, str):
        return (datetime.fromisoformat(value) - EPOCH) // timedelta(microseconds=1)
    return value


def _make_times_numbers(connection: sa.Connection, table: str, sql: str) -> None:
    """Make a table of SQLite anew whose times are text, as it may not be altered, and carry its rows over."""
    times = TIME_COLUMN.findall(sql)
    if not times:
        return
    indexes = connection.execute(sa.text(INDEXES), {"table": table}).scalars().all()
    columns = [row.name for row in connection.execute(sa.text(f"PRAGMA table_info({table})"))]
    made = re.sub(
        rf"^CREATE TABLE \"?{table}\"?", f"CREATE TABLE {table}_new", TIME_COLUMN.sub(r"\1 BIGINT", sql)
    )
    op.execute(sa.text(made))
    values = ", ".join(MICROSECONDS.format(name) if name in times else name for name in columns)
    op.execute(f"INSERT INTO {table}_new ({', '.join(columns)}) SELECT {values} FROM {table}")
    op.execute(f"DROP TABLE {table}")
    op.execute(f"ALTER TABLE {table}_new RENAME TO {table}")
    for index in indexes:
        op.execute(sa.text(index))


REST = (
    "engine_attempt_id",
    "adapter_version",
    "engine_run_ref",
    "caused_by_signal_id",
    "parent_event_id",
    "extra",
)
PLAIN = {"passed": True, "violations": 0, "lines": [], "detail": None}

EVENTS = """
SELECT position, run_id, run_seq, event_id, event_type, step_id, logical_attempt_id, engine_attempt_id,
    plan_version, idempotency_key, CAST(event_data AS text) AS event_data, emitted_at, persisted_at,
    adapter_version, CAST(engine_run_ref AS text) AS engine_run_ref, caused_by_signal_id, parent_event_id,
    CAST(extra AS text) AS extra, partition
FROM run_event_old ORDER BY position
"""
ATTEMPTS = "SELECT * FROM attempt_old"
LAST_POSITION = "SELECT pg_sequence_last_value('run_event_position_seq')"
SQLITE_HEADS = """
INSERT INTO run_head (run_id, last_seq)
SELECT run_id, max(last_seq) FROM (
    SELECT run_id, run_seq AS last_seq FROM run_event_old UNION ALL SELECT run_id, last_seq FROM retired_run)
GROUP BY run_id ORDER BY run_id
"""
TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
TABLES = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
INDEXES = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL"
TIME_COLUMN = re.compile(r"\b(at|since|\w+_at) TEXT\b")
# What was written has always six digits of a second, and says +00:00.
MICROSECONDS = "CAST(strftime('%s', {0}) AS INTEGER) * 1000000 + CAST(substr({0}, 21, 6) AS INTEGER)"

SQLITE_GUARDS = {
    "run_event_delete": f"""
    CREATE TRIGGER run_event_delete BEFORE DELETE ON run_event
    WHEN NOT EXISTS (
        SELECT 1 FROM run_head JOIN retired_run USING (run_id)
        WHERE run_head.number = OLD.run_number AND retired_run.last_seq >= OLD.run_seq)
    BEGIN
        SELECT RAISE(ABORT, '{NEVER}');
    END
    """,
    # INSERT OR REPLACE deletes rows without firing their delete triggers. FAIL refuses a row as ABORT does,
    # and an INSERT OR FAIL then needs no journal of its own.
    "run_event_replace": f"""
    CREATE TRIGGER run_event_replace BEFORE INSERT ON run_event
    WHEN EXISTS (SELECT 1 FROM run_event WHERE run_number = NEW.run_number AND run_seq >= NEW.run_seq)
        OR NOT EXISTS (SELECT 1 FROM run_head WHERE number = NEW.run_number AND last_seq < NEW.run_seq)
        OR EXISTS (SELECT 1 FROM run_event WHERE event_key = NEW.event_key)
        OR EXISTS (SELECT 1 FROM run_event WHERE position = NEW.position)
    BEGIN
        SELECT RAISE(FAIL, '{NEVER}');
    END
    """,
    "retired_run_insert": """
    CREATE TRIGGER retired_run_insert BEFORE INSERT ON retired_run
    WHEN NOT EXISTS (SELECT 1 FROM run_head WHERE run_id = NEW.run_id AND last_seq = NEW.last_seq)
        OR EXISTS (SELECT 1 FROM retired_run WHERE id = NEW.id)
    BEGIN
        SELECT RAISE(ABORT, 'a run is retired as a whole, and once said so for ever');
    END
    """,
    "retired_run_removes": """
    CREATE TRIGGER retired_run_removes AFTER INSERT ON retired_run
    BEGIN
        DELETE FROM run_event WHERE run_seq <= NEW.last_seq
            AND run_number = (SELECT number FROM run_head WHERE run_id = NEW.run_id);
    END
    """,
    "run_head_update": f"""
    CREATE TRIGGER run_head_update BEFORE UPDATE ON run_head
    WHEN NEW.number <> OLD.number OR NEW.run_id <> OLD.run_id OR NEW.last_seq < OLD.last_seq
    BEGIN
        SELECT RAISE(ABORT, '{NEVER}');
    END
    """,
    "run_head_delete": f"""
    CREATE TRIGGER run_head_delete BEFORE DELETE ON run_head
    BEGIN
        SELECT RAISE(ABORT, '{NEVER}');
    END
    """,
    "run_head_replace": f"""
    CREATE TRIGGER run_head_replace BEFORE INSERT ON run_head
    WHEN EXISTS (SELECT 1 FROM run_head WHERE run_id = NEW.run_id OR number = NEW.number)
    BEGIN
        SELECT RAISE(FAIL, '{NEVER}');
    END
    """,
}
POSTGRESQL_GUARDS = (
    """
    CREATE TRIGGER run_event_update BEFORE UPDATE ON run_event
    FOR EACH ROW EXECUTE FUNCTION run_event_refuse()
    """,
    """
    CREATE TRIGGER run_event_truncate BEFORE TRUNCATE ON run_event
    FOR EACH STATEMENT EXECUTE FUNCTION run_event_refuse()
    """,
    """
    CREATE TRIGGER run_event_delete BEFORE DELETE ON run_event
    FOR EACH ROW EXECUTE FUNCTION run_event_delete()
    """,
    """
    CREATE TRIGGER run_head_update BEFORE UPDATE OF number, run_id ON run_head
    FOR EACH ROW EXECUTE FUNCTION run_event_refuse()
    """,
    """
    CREATE TRIGGER run_head_delete BEFORE DELETE ON run_head
    FOR EACH ROW EXECUTE FUNCTION run_event_refuse()
    """,
    """
    CREATE TRIGGER run_head_truncate BEFORE TRUNCATE ON run_head
    FOR EACH STATEMENT EXECUTE FUNCTION run_event_refuse()
    """,
)

RUN_EVENT = sa.table(
    "run_event",
    sa.column("position", NUMBER),
    sa.column("run_number", sa.Integer),
    sa.column("run_seq", sa.BigInteger),
    sa.column("persisted_at", TIME),
    sa.column("emitted_at", TIME),
    sa.column("event_key", DIGEST),
    *(sa.column(name, sa.Text) for name in ("event_type", "step_id", "logical_attempt_id", "plan_version")),
    sa.column("partition", sa.Text),
    sa.column("event_data", sa.LargeBinary),
    sa.column("rest", sa.LargeBinary),
)
VALIDATOR = sa.table(
    "validator",
    sa.column("id", sa.Integer),
    sa.column("digest", sa.Text),
    sa.column("version", sa.Text),
    sa.column("checks", DOCUMENT),
)
ATTEMPT = sa.table(
    "attempt",
    *(sa.column(name, sa.Text) for name in KEY[:3]),
    sa.column("logical_date", sa.Date),
    sa.column("attempt", sa.Integer),
    sa.column("validator_id", sa.Integer),
    sa.column("judged_at", TIME),
    sa.column("record_count", sa.BigInteger),
    *(sa.column(name, sa.Text) for name in ("run_id", "outcome", "schema_version", "error_message")),
    sa.column("findings", DOCUMENT),
    sa.column("revalidation_id", sa.Text),
)
