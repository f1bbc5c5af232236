"""Fences: whether a claim still holds, asked in the transaction that writes under it (R-CTL-4)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey
from sealbook.model.claims import Fences

_KEY_COLUMNS = [work.c[name] for name in KEY]


def lock_held(connection: Connection, fences: Fences) -> set[PartitionKey]:
    """Return the partitions that are still held under these fences; until the end, none can take them."""
    if not fences:
        return set()
    found = connection.execute(_held(connection.dialect.name), encode_fences(fences.items()))
    return {PartitionKey(*row) for row in found}


def encode_fences(fences: Iterable[tuple[PartitionKey, int]]) -> dict[str, str]:
    """Return the parameter that `held_rows` reads."""
    return encode_rows(
        {
            "source": key.source,
            "customer_id": key.customer_id,
            "query_name": key.query_name,
            "logical_date": key.logical_date,
            "fence": fence,
        }
        for key, fence in fences
    )


@cache
def _held(dialect: str) -> Select[Any]:
    return held_rows(dialect)


def held_rows(dialect: str) -> Select[Any]:
    """Select the keys of work that is held under the fences given, locked in key order."""
    given = given_rows(dialect, [*_KEY_COLUMNS, work.c.fence])
    return (
        select(*_KEY_COLUMNS)
        .join(given, same(work, given, "fence"))
        .where(work.c.holder.is_not(None))
        .order_by(*_KEY_COLUMNS)
        .with_for_update(of=work)
    )
