"""The warehouse's tables in the ledger: what is published, what was, and the artifacts that it lies in."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from sealbook.ledger.db.tables import KEY, key_columns, metadata
from sealbook.ledger.db.types import JsonDocument, Name, RunIdText, Sha256, TextLines, UtcTimestamp

ARTIFACT = (*KEY, "run_id", "schema_version")
"""What identifies an artifact."""

STAGED = (
    "record_count",
    "bytes",
    "digest",
    "location",
    "parts",
    "format",
    "copy",
    "part_digests",
    "files_run_id",
)
"""What a load record knows of an artifact, beside when it was loaded."""

REFILED = ("copy", "part_digests")
"""What of it changes when its files had to be written anew, and nothing else does."""

BY_QUERY = ("query_name", "source", "customer_id", "logical_date")
"""The key, ordered so that the pointers of a query lie together: a reader names a query, often no more."""

load_record = Table(
    "load_record",
    metadata,
    *key_columns(),
    Column("run_id", RunIdText, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("loaded_at", UtcTimestamp, nullable=False),
    Column("record_count", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("digest", Sha256, nullable=False),
    Column("location", Text),
    Column("parts", Integer, nullable=False),
    Column("format", Integer, nullable=False, server_default=text("1")),
    Column("copy", Integer, nullable=False, server_default=text("0")),
    Column("part_digests", TextLines),
    Column("files_run_id", RunIdText),
    PrimaryKeyConstraint(*ARTIFACT),
    CheckConstraint("record_count >= 0 AND bytes >= 0 AND parts >= 1", name="counts"),
    sqlite_with_rowid=False,
)
"""What was ever loaded. Its location is there only where it is not that of the layout: see `locations.py`.

A run whose payload is that of the run published before it has no files of its own: `files_run_id` is the run
whose files it shares, which always has files of its own.
"""

pointer = Table(
    "pointer",
    metadata,
    *key_columns(),
    Column("run_id", RunIdText, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("valid_from", BigInteger, nullable=False),
    Column("valid_to", BigInteger),
    Column("published_at", UtcTimestamp, nullable=False),
    Column("closed_at", UtcTimestamp),
    PrimaryKeyConstraint(*BY_QUERY, "valid_from"),
    CheckConstraint("valid_to > valid_from", name="span"),
    CheckConstraint("(valid_to IS NULL) = (closed_at IS NULL)", name="closed"),
    sqlite_with_rowid=False,
)
"""Pointers and their history: a row holds for a span of warehouse versions, and now if it has no end."""
# A partition has one pointer at a time: readers never see two runs of it (R-CON-1).
Index(
    "pointer_open",
    *(pointer.c[name] for name in BY_QUERY),
    unique=True,
    sqlite_where=pointer.c.valid_to.is_(None),
    postgresql_where=pointer.c.valid_to.is_(None),
)

# Whoever follows changes asks for what began or ended after a version, among all that ever did.
Index("pointer_begun", pointer.c.valid_from)
Index(
    "pointer_ended",
    pointer.c.valid_to,
    sqlite_where=pointer.c.valid_to.is_not(None),
    postgresql_where=pointer.c.valid_to.is_not(None),
)

warehouse_version = Table(
    "warehouse_version",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_at", UtcTimestamp),
    PrimaryKeyConstraint("id"),
    CheckConstraint("id = 1", name="one_row"),
)
"""One row, which every writer of pointers locks: their times go by it, and never back (R-STATE-11)."""

cut = Table(
    "cut",
    metadata,
    Column("token", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False),
    Column("note", Text),
    PrimaryKeyConstraint("token"),
)
"""Versions of the warehouse that stay readable, each by its token, until they are dropped."""

consumer = Table(
    "consumer",
    metadata,
    Column("name", Name, nullable=False),
    Column("source", Name, nullable=False),
    Column("query_name", Name, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("token", Text, nullable=False),
    Column("advanced_at", UtcTimestamp, nullable=False),
    Column("holds", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("name", "source", "query_name"),
)
"""Up to where each consumer has followed a query: the token says it in full, the version is that of it.

For one that `holds`, as mirrors do, clean-up keeps what was published at that version or since.
"""

removal = Table(
    "removal",
    metadata,
    *key_columns(),
    Column("run_id", RunIdText, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("copy", Integer, nullable=False),
    Column("condemned_at", UtcTimestamp, nullable=False),
    Column("removed_at", UtcTimestamp),
    PrimaryKeyConstraint(*ARTIFACT),
    sqlite_with_rowid=False,
)
"""The last copy of an artifact that a clean-up condemned; its files are deleted where it has `removed_at`.

What is condemned is never published again: a load writes the next copy, under other names.
"""

drift = Table(
    "drift",
    metadata,
    *key_columns(),
    Column("from_run_id", RunIdText, nullable=False),
    Column("to_run_id", RunIdText, nullable=False),
    Column("age_hours", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("totals", JsonDocument),
    Column("change", Double, nullable=False),
    Column("problem", Text),
    PrimaryKeyConstraint(*BY_QUERY, "from_run_id", "to_run_id"),
    sqlite_with_rowid=False,
)
"""What each replacement of a published run by another changed, and how old the day was when that was opened.

`totals` are those of numeric columns that differ, before and after; `problem` says why the runs were not
compared.
"""

authority_change = Table(
    "authority_change",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(always=True), primary_key=True),
    *key_columns(),
)
"""Keys whose authority changed since a load last agreed with it, so that a plan need not compare them all.

Triggers on partition_state add a row in the transaction of the change. A row is deleted by a statement that
sees state and pointer agree: had it not seen a later change, it would not see that change's row either.
"""
Index("authority_change_key", *(authority_change.c[name] for name in KEY))
