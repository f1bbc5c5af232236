"""What the ledger's tables say of partitions now: the same as coverage does (R-PST-9)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from sqlalchemy import Column, Connection, Executable, Integer, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.tables import run_head
from sealbook.ledger.pointers.conditions import pointer_of
from sealbook.ledger.pointers.coverage import AVAILABILITY
from sealbook.ledger.pointers.tables import pointer
from sealbook.ledger.states.rows import key_row
from sealbook.ledger.states.tables import attempt, partition_state
from sealbook.model import Outcome, PartitionKey


class Facts(NamedTuple):
    """What consumers get of a partition, and which validator last accepted what was materialized of it."""

    availability: str
    validator_id: int | None


def read_facts(
    connection: Connection, materialized: Mapping[PartitionKey, int | None]
) -> dict[PartitionKey, Facts]:
    """Read them for some partitions, of which the numbers of the runs are given that were materialized."""
    keys = list(materialized)
    asked = encode_rows(
        {"place": place, **key_row(key), "run": materialized[key]} for place, key in enumerate(keys)
    )
    rows = connection.execute(_facts(connection.dialect.name), asked)
    return {keys[place]: Facts(availability, validator) for place, availability, validator in rows}


@cache
def _facts(dialect: str) -> Executable:
    columns = [Column("place", Integer), *(partition_state.c[name] for name in KEY), Column("run", Integer)]
    asked = given_rows(dialect, columns)
    accepted = (
        select(attempt.c.validator_id)
        .join(run_head, run_head.c.run_id == attempt.c.run_id)
        .where(
            same(attempt, asked),
            run_head.c.number == asked.c.run,
            attempt.c.outcome == Outcome.ACCEPTED.value,
        )
        .order_by(attempt.c.attempt.desc())
        .limit(1)
        .correlate(asked)
        .scalar_subquery()
    )
    return (
        select(asked.c.place, AVAILABILITY, accepted)
        .select_from(asked)
        .outerjoin(partition_state, same(partition_state, asked))
        .outerjoin(pointer, pointer_of(asked))
    )
