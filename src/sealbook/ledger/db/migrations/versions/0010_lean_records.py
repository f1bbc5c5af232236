"""Load records have their digest as bytes, and spell no location that follows from the artifact."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

KEY = ("source", "customer_id", "query_name", "logical_date")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

LOCATION = (
    "source || '/' || query_name || '/schema_version=' || schema_version || '/customer_id=' || customer_id"
    " || '/logical_date=' || {day} || '/run_id=' || run_id"
)


def upgrade() -> None:
    """Carry every record over; on PostgreSQL, the number of an event in its run becomes one of 4 bytes."""
    if op.get_bind().dialect.name == "postgresql":
        location = LOCATION.format(day="to_char(logical_date, 'YYYY-MM-DD')")
        op.execute(
            "ALTER TABLE load_record ALTER digest TYPE bytea USING decode(digest, 'hex'),"
            f" ALTER location DROP NOT NULL, ALTER location TYPE text USING nullif(location, {location})"
        )
        op.execute("ALTER TABLE run_event ALTER run_seq TYPE integer")
    else:
        _renew_on_sqlite()


def _renew_on_sqlite() -> None:
    driver: Any = op.get_bind().connection.driver_connection
    driver.create_function("from_hex", 1, bytes.fromhex, deterministic=True)  # SQLite has unhex since 3.41
    op.execute("ALTER TABLE load_record RENAME TO load_record_old")
    op.create_table(
        "load_record",
        *(sa.Column(name, NAME, nullable=False) for name in KEY[:3]),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
        sa.Column("loaded_at", sa.BigInteger, nullable=False),
        sa.Column("record_count", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("location", sa.Text),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("format", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("copy", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("part_digests", sa.Text),
        sa.PrimaryKeyConstraint(*KEY, "run_id", "schema_version", name="load_record_pkey"),
        sa.CheckConstraint("record_count >= 0 AND bytes >= 0 AND parts >= 1", name="load_record_counts"),
        sqlite_with_rowid=False,
    )
    same = ", ".join((*KEY, "run_id", "schema_version", "loaded_at", "record_count", "bytes"))
    rest = "parts, format, copy, part_digests"
    op.execute(
        f"INSERT INTO load_record ({same}, {rest}, digest, location) SELECT {same}, {rest}, from_hex(digest),"
        f" nullif(location, {LOCATION.format(day='logical_date')}) FROM load_record_old"
    )
    op.drop_table("load_record_old")
