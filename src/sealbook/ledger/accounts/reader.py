"""Reads what is known of accounts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select

from sealbook.ledger.accounts.tables import account_refresh, account_sighting
from sealbook.ledger.db.engine import Database
from sealbook.model.accounts import DiscoveredAccount, KnownAccount, Presence, Sighting
from sealbook.model.scope import DEFAULT_SCOPE, Scope


@dataclass(frozen=True, slots=True)
class Refresh:
    """When a source was last asked for the accounts below a root and answered; and what failed since."""

    source: str
    root: str | None = None
    """None before the first answer."""
    refreshed_at: datetime | None = None
    failed_at: datetime | None = None
    failures: int = 0
    error: str | None = None


class AccountReader:
    """The port of whoever asks which accounts there are."""

    def __init__(self, database: Database, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._scope = scope

    def known(self, source: str) -> list[KnownAccount]:
        """Return all accounts that a source ever told of, by their ids, with their history."""
        with self._database.read() as connection:
            return read_known(connection, self._scope, source)

    def refresh(self, source: str) -> Refresh:
        """Return when the accounts of a source were refreshed."""
        with self._database.read() as connection:
            return read_refresh(connection, self._scope, source)


def read_known(connection: Connection, scope: Scope, source: str) -> list[KnownAccount]:
    """Return all accounts of a source, by their ids."""
    histories: dict[str, list[Sighting]] = defaultdict(list)
    for row in connection.execute(_SIGHTINGS, {**scope._asdict(), "source": source}):
        histories[row.customer_id].append(_sighting(row))
    return [KnownAccount(tuple(history)) for _, history in sorted(histories.items())]


def read_refresh(connection: Connection, scope: Scope, source: str) -> Refresh:
    """Return when the accounts of a source were refreshed."""
    row = connection.execute(_REFRESH, {**scope._asdict(), "source": source}).one_or_none()
    return Refresh(source) if row is None else Refresh(*row)


def _of_source(table: Any) -> list[Any]:
    return [table.c[name] == bindparam(name) for name in ("tenant_id", "workspace_id", "source")]


_SIGHTINGS = select(account_sighting).where(*_of_source(account_sighting)).order_by(account_sighting.c.id)
_REFRESH = select(*(account_refresh.c[name] for name in Refresh.__slots__)).where(
    *_of_source(account_refresh)
)


def _sighting(row: Any) -> Sighting:
    account = DiscoveredAccount(
        row.customer_id,
        row.name,
        row.status,
        row.is_open,
        row.is_manager,
        row.is_hidden,
        row.level,
        row.time_zone,
        row.currency,
        tuple(row.labels),
    )
    return Sighting(row.at, account, Presence(row.presence), row.actor, row.reason)
