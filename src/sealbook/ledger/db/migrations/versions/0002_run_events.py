"""The run-event log, its feed and its projections."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
JSON_TEXT = sa.Text().with_variant(sa.JSON(), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables, and what guards them in the database itself."""
    _create_log()
    _create_projections()
    if op.get_bind().dialect.name == "postgresql":
        _create_heads()
        schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
        # A function that acts with its owner's rights looks names up in this ledger's schema only.
        as_owner = f"SECURITY DEFINER SET search_path = {schema}, pg_temp"
        statements = [statement.replace("AS OWNER", as_owner) for statement in POSTGRESQL]
    else:
        statements = SQLITE
    for statement in statements:
        op.execute(sa.text(statement))


def _create_heads() -> None:
    op.create_table(
        "run_head",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="run_head_pkey"),
    )


def _create_log() -> None:
    op.create_table(
        "run_event",
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("run_seq", sa.BigInteger, nullable=False),
        sa.Column("event_id", NAME, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("step_id", sa.Text),
        sa.Column("logical_attempt_id", sa.Text),
        sa.Column("engine_attempt_id", sa.Text),
        sa.Column("plan_version", sa.Text, nullable=False),
        sa.Column("idempotency_key", NAME, nullable=False),
        sa.Column("event_data", JSON_TEXT, nullable=False),
        sa.Column("emitted_at", TIME, nullable=False),
        sa.Column("persisted_at", TIME, nullable=False),
        sa.Column("adapter_version", sa.Text),
        sa.Column("engine_run_ref", JSON_TEXT),
        sa.Column("caused_by_signal_id", sa.Text),
        sa.Column("parent_event_id", sa.Text),
        sa.Column("extra", JSON_TEXT),
        sa.PrimaryKeyConstraint("position", name="run_event_pkey"),
        sa.UniqueConstraint("run_id", "run_seq", name="run_event_seq"),
        sa.UniqueConstraint("run_id", "idempotency_key", name="run_event_key"),
        sa.CheckConstraint("run_seq >= 1", name="run_event_run_seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "retired_run",
        sa.Column("id", NUMBER, sa.Identity(always=True), nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("event_count", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("retired_at", TIME, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="retired_run_pkey"),
    )
    op.create_index("retired_run_run", "retired_run", ["run_id"])


def _create_projections() -> None:
    op.create_table(
        "projection",
        sa.Column("id", NUMBER, sa.Identity(always=True), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("held_until", TIME),
        sa.PrimaryKeyConstraint("id", name="projection_pkey"),
        sa.UniqueConstraint("name", "active", name="projection_name"),
        sa.CheckConstraint("(holder IS NULL) = (held_until IS NULL)", name="projection_lease"),
    )
    op.create_table(
        "run_snapshot",
        sa.Column("projection_id", sa.BigInteger, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("last_event_seq", sa.BigInteger, nullable=False),
        sa.Column("event_count", sa.BigInteger, nullable=False),
        sa.Column("stale_seq", sa.BigInteger),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("projection_id", "run_id", name="run_snapshot_pkey"),
        sqlite_with_rowid=False,
    )
    stale = sa.text("stale_seq IS NOT NULL")
    op.create_index(
        "run_snapshot_stale",
        "run_snapshot",
        ["projection_id", "run_id"],
        sqlite_where=stale,
        postgresql_where=stale,
    )


NEVER = "events are never changed or deleted; retention removes whole runs"

SQLITE = [
    f"""
    CREATE TRIGGER run_event_update BEFORE UPDATE ON run_event
    BEGIN
        SELECT RAISE(ABORT, '{NEVER}');
    END
    """,
    f"""
    CREATE TRIGGER run_event_delete BEFORE DELETE ON run_event
    WHEN NOT EXISTS (SELECT 1 FROM retired_run WHERE run_id = OLD.run_id AND last_seq >= OLD.run_seq)
    BEGIN
        SELECT RAISE(ABORT, '{NEVER}');
    END
    """,
    # INSERT OR REPLACE deletes rows without firing their delete triggers. FAIL refuses a row as ABORT does,
    # and an INSERT OR FAIL then needs no journal of its own.
    f"""
    CREATE TRIGGER run_event_replace BEFORE INSERT ON run_event
    WHEN EXISTS (SELECT 1 FROM run_event WHERE run_id = NEW.run_id AND run_seq >= NEW.run_seq)
        OR EXISTS (SELECT 1 FROM retired_run WHERE run_id = NEW.run_id AND last_seq >= NEW.run_seq)
        OR EXISTS (SELECT 1 FROM run_event WHERE run_id = NEW.run_id
            AND idempotency_key = NEW.idempotency_key)
        OR EXISTS (SELECT 1 FROM run_event WHERE position = NEW.position)
    BEGIN
        SELECT RAISE(FAIL, '{NEVER}');
    END
    """,
    """
    CREATE TRIGGER retired_run_insert BEFORE INSERT ON retired_run
    WHEN NEW.last_seq IS NOT (SELECT max(run_seq) FROM run_event WHERE run_id = NEW.run_id)
        OR EXISTS (SELECT 1 FROM retired_run WHERE id = NEW.id)
    BEGIN
        SELECT RAISE(ABORT, 'a run is retired as a whole, and once said so for ever');
    END
    """,
    """
    CREATE TRIGGER retired_run_removes AFTER INSERT ON retired_run
    BEGIN
        DELETE FROM run_event WHERE run_id = NEW.run_id AND run_seq <= NEW.last_seq;
    END
    """,
    *(
        f"""
        CREATE TRIGGER retired_run_{action.lower()} BEFORE {action} ON retired_run
        BEGIN
            SELECT RAISE(ABORT, 'who retired a run is never changed or forgotten');
        END
        """
        for action in ("UPDATE", "DELETE")
    ),
]

# Positions are given out before commit, and commits may come in another order. So that the feed knows, an
# appender says after which position its own will be, in an advisory lock that it takes before the first and
# that goes with its transaction, however that ends.
# All such locks are shared, so none is refused; as a condition it needs no query, which would take longer.
ANNOUNCE = """
IF NOT pg_try_advisory_xact_lock_shared(
    ('run_event_position_seq'::regclass::oid::bigint << 32)
    | (coalesce(pg_sequence_last_value('run_event_position_seq'), 0) & 4294967295)) THEN
    RAISE EXCEPTION 'the position of an event could not be announced' USING ERRCODE = 'lock_not_available';
END IF
"""

FIND = """
SELECT known.run_seq, known.event_data INTO seq, stored FROM run_event AS known
WHERE known.run_id = event.run_id AND known.idempotency_key = event.idempotency_key
"""

# A notification makes commits queue up behind each other, so it is sent only to followers who sleep; those
# hold the lock of the bell. It is tried and let go in one expression: meanwhile others take it for held.
RING = """
IF NOT (pg_try_advisory_lock('run_event'::regclass::oid::bigint << 32)
    AND pg_advisory_unlock('run_event'::regclass::oid::bigint << 32)) THEN
    PERFORM pg_notify('run_event', '');
END IF
"""

POSTGRESQL = [
    f"""
    CREATE FUNCTION run_event_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '{NEVER}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER run_event_update BEFORE UPDATE ON run_event
    FOR EACH ROW EXECUTE FUNCTION run_event_refuse()
    """,
    """
    CREATE TRIGGER run_event_truncate BEFORE TRUNCATE ON run_event
    FOR EACH STATEMENT EXECUTE FUNCTION run_event_refuse()
    """,
    f"""
    CREATE FUNCTION run_event_delete() RETURNS trigger LANGUAGE plpgsql AS OWNER AS $$
    BEGIN
        IF EXISTS (SELECT FROM retired_run WHERE run_id = OLD.run_id AND last_seq >= OLD.run_seq) THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION '{NEVER}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER run_event_delete BEFORE DELETE ON run_event
    FOR EACH ROW EXECUTE FUNCTION run_event_delete()
    """,
    # Whoever counted the events before this row was written may be behind: it must look again.
    """
    CREATE FUNCTION retired_run_removes() RETURNS trigger LANGUAGE plpgsql AS OWNER AS $$
    BEGIN
        PERFORM FROM run_head WHERE run_id = NEW.run_id AND last_seq = NEW.last_seq FOR UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the run moved on while it was being retired'
                USING ERRCODE = 'serialization_failure';
        END IF;
        DELETE FROM run_event WHERE run_id = NEW.run_id AND run_seq <= NEW.last_seq;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER retired_run_removes AFTER INSERT ON retired_run
    FOR EACH ROW EXECUTE FUNCTION retired_run_removes()
    """,
    """
    CREATE FUNCTION retired_run_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'who retired a run is never changed or forgotten'
            USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER retired_run_refuse BEFORE UPDATE OR DELETE ON retired_run
    FOR EACH ROW EXECUTE FUNCTION retired_run_refuse()
    """,
    """
    CREATE TRIGGER retired_run_truncate BEFORE TRUNCATE ON retired_run
    FOR EACH STATEMENT EXECUTE FUNCTION retired_run_refuse()
    """,
    # The append authority, for one event and for many. A head is held until commit, and every statement in
    # here sees what was committed before it began: a key that another appender stored while this one waited
    # is found. `stored` is what it was stored with. Many events come sorted by run, so that all appenders
    # take the heads in one order.
    f"""
    CREATE FUNCTION run_event_append_one(event run_event, OUT seq bigint, OUT stored text)
    LANGUAGE plpgsql AS OWNER AS $$
    BEGIN
        INSERT INTO run_head AS head (run_id, last_seq) VALUES (event.run_id, 1)
        ON CONFLICT (run_id) DO UPDATE SET last_seq = head.last_seq + 1
        RETURNING last_seq INTO seq;
        {ANNOUNCE};
        event.run_seq := seq;
        event.position := nextval('run_event_position_seq');
        INSERT INTO run_event VALUES (event.*) ON CONFLICT (run_id, idempotency_key) DO NOTHING;
        IF NOT FOUND THEN
            UPDATE run_head SET last_seq = last_seq - 1 WHERE run_id = event.run_id;
            {FIND};
        END IF;
        {RING};
    END $$
    """,
    f"""
    CREATE FUNCTION run_event_append(events json) RETURNS TABLE (seq bigint, stored text)
    LANGUAGE plpgsql AS OWNER AS $$
    DECLARE
        event run_event;
        run text;
        last bigint;
    BEGIN
        FOR event IN SELECT * FROM json_populate_recordset(NULL::run_event, events) LOOP
            IF run IS DISTINCT FROM event.run_id THEN
                IF run IS NOT NULL THEN
                    UPDATE run_head SET last_seq = last WHERE run_id = run;
                END IF;
                SELECT last_seq INTO last FROM run_head WHERE run_id = event.run_id FOR NO KEY UPDATE;
                IF NOT FOUND THEN
                    INSERT INTO run_head (run_id, last_seq) VALUES (event.run_id, 0) ON CONFLICT DO NOTHING;
                    SELECT last_seq INTO last FROM run_head WHERE run_id = event.run_id FOR NO KEY UPDATE;
                END IF;
                IF run IS NULL THEN
                    {ANNOUNCE};
                END IF;
                run := event.run_id;
            END IF;
            event.run_seq := last + 1;
            event.position := nextval('run_event_position_seq');
            INSERT INTO run_event VALUES (event.*) ON CONFLICT (run_id, idempotency_key) DO NOTHING;
            IF FOUND THEN
                last := event.run_seq;
                seq := last;
                stored := NULL;
            ELSE
                {FIND};
            END IF;
            RETURN NEXT;
        END LOOP;
        UPDATE run_head SET last_seq = last WHERE run_id = run;
        {RING};
    END $$
    """,
    "REVOKE EXECUTE ON FUNCTION run_event_append_one FROM PUBLIC",
    "REVOKE EXECUTE ON FUNCTION run_event_append FROM PUBLIC",
    # How far the feed can be read without skipping what commits late. The order matters: whoever was given a
    # position up to `allocated` had its lock before. Either it still has it, and bounds the horizon; or it
    # has ended, and the next statement sees what it committed. Locks carry the low 32 bits of a position,
    # which is near `allocated`, before or after.
    """
    CREATE FUNCTION run_feed_horizon(OUT horizon bigint, OUT in_flight boolean)
    LANGUAGE plpgsql AS OWNER AS $$
    DECLARE
        allocated bigint;
    BEGIN
        SELECT last_value - (NOT is_called)::integer INTO allocated FROM run_event_position_seq;
        SELECT min(allocated - ((allocated - objid::bigint + 2147483648) & 4294967295) + 2147483648),
            count(*) > 0
        INTO horizon, in_flight
        FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1
            AND classid = 'run_event_position_seq'::regclass
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
        horizon := least(horizon, allocated);
    END $$
    """,
]
