"""The view `published_partition`: what consumers read, for whoever asks the database itself."""

from __future__ import annotations

from datetime import UTC, date, datetime

from sqlalchemy import Connection, column, func, select, table

from sealbook.ledger.db.tables import KEY
from sealbook.model.publication import Freshest

NAME = "published_partition"
COLUMNS = (*KEY, "run_id", "schema_version", "record_count", "published_at", "behind")

_view = table(NAME, *map(column, COLUMNS))
_FRESHEST = (
    select(_view.c.source, _view.c.query_name)
    .add_columns(func.count(), func.max(_view.c.logical_date), func.max(_view.c.published_at))
    .group_by(_view.c.source, _view.c.query_name)
    .order_by(_view.c.source, _view.c.query_name)
)


def read_freshest(connection: Connection) -> list[Freshest]:
    """Return how much of each query can be read, up to which day, and when the last of it was published."""
    return [
        Freshest(source, query_name, partitions, _day(newest), _moment(published_at))
        for source, query_name, partitions, newest, published_at in connection.execute(_FRESHEST)
    ]


def _day(value: str | date) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _moment(value: str | datetime) -> datetime:
    """Return a moment in UTC; SQLite, which has no type for it, gives a text."""
    return (
        datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value.astimezone(UTC)
    )
