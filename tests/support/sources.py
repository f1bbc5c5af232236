"""Queries of sources that a text describes, for tests."""

from __future__ import annotations

import json
from datetime import date

from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query

DAY = date(2026, 1, 1)


def described(source: str, text: object, **columns: str) -> Query:
    """Return a query `orders` whose text is a mapping, or plain."""
    kinds = columns or {"id": "bigint"}
    contract = Contract("orders", "1", tuple(Column(name, ColumnType(kind)) for name, kind in kinds.items()))
    return Query(source, "orders", text if isinstance(text, str) else json.dumps(text), "1", {"1": contract})


def key_of(source: str, customer_id: str = "acme", day: date = DAY) -> PartitionKey:
    """Return a key of that query."""
    return PartitionKey(source, customer_id, "orders", day)
