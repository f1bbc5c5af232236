"""A million published partitions, of which the last load has replaced a hundred."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import Connection, update

from sealbook.ledger import Ledger
from sealbook.ledger.db.bulk import insert_rows
from sealbook.ledger.pointers.tables import pointer, warehouse_version
from tests.support.ledger import run_id

VERSIONS = 1_000
PER_VERSION = 1_000
PARTITIONS = VERSIONS * PER_VERSION
CHANGED = 100

_FIRST = date(2024, 1, 1)
_AT = datetime(2026, 11, 1, tzinfo=UTC)
_OTHERS = [f"c{number}" for number in range(CHANGED)]


def fill(ledger: Ledger) -> None:
    """Write the pointers that as many loads leave, of a day each, and then one of a hundred partitions."""

    def work(connection: Connection) -> None:
        for place in range(VERSIONS):
            customers = (f"c{number}" for number in range(PER_VERSION))
            insert_rows(connection, pointer, list(_rows(customers, place, place + 1, run=1)))
        last = VERSIONS + 1
        ended = update(pointer).where(pointer.c.logical_date == _FIRST, pointer.c.customer_id.in_(_OTHERS))
        connection.execute(ended.values(valid_to=last, closed_at=_AT))
        insert_rows(connection, pointer, list(_rows(iter(_OTHERS), 0, last, run=2)))
        connection.execute(update(warehouse_version).values(version=last, changed_at=_AT))

    ledger._database.write(work)  # noqa: SLF001 - loads would take as long as they do anywhere

    def look(connection: Connection) -> None:
        connection.exec_driver_sql("ANALYZE")

    ledger._database.write(look)  # noqa: SLF001 - as the database does by itself, sooner or later


def _rows(customers: Iterator[str], day: int, version: int, *, run: int) -> Iterator[tuple[object, ...]]:
    for each in customers:
        key = ("demo", each, "campaign_daily", _FIRST + timedelta(days=day))
        yield (*key, run_id(run), "1", version, None, _AT, None)
