"""What all tables of the ledger share: their metadata, and the columns that name a partition."""

from __future__ import annotations

from sqlalchemy import Column, Date, MetaData

from sealbook.ledger.db.types import Name

KEY = ("source", "customer_id", "query_name", "logical_date")

metadata = MetaData(
    naming_convention={"ck": "%(table_name)s_%(constraint_name)s", "pk": "%(table_name)s_pkey"}
)


def key_columns() -> list[Column[object]]:
    """Return the columns that name a partition, for one more table."""
    return [
        Column("source", Name, nullable=False),
        Column("customer_id", Name, nullable=False),
        Column("query_name", Name, nullable=False),
        Column("logical_date", Date, nullable=False),
    ]
