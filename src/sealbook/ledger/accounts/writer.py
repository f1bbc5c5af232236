"""Writes what sources tell of their accounts: one at a time for each source; nothing is ever taken out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, insert
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.errors import Conflict, NotFound, QuotaExceeded, QuotaScope
from sealbook.ledger.accounts.reader import Refresh, read_known, read_refresh
from sealbook.ledger.accounts.tables import account_refresh, account_sighting
from sealbook.ledger.db import leases
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.schedule import budgets
from sealbook.ledger.schedule.gate import lock_lanes
from sealbook.model.accounts import DiscoveredAccount, Presence, Sighting, sightings_of
from sealbook.model.scope import DEFAULT_SCOPE, Scope
from sealbook.model.verdict import check_text
from sealbook.model.work import Lane

TURN = timedelta(minutes=15)
"""How long one who died keeps others from asking; longer than any source should need to answer."""

REQUESTS = 2
"""What a refresh is priced at: the tree of accounts, and the names of their labels."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of a refresh: how many accounts there are, and which are new, changed or gone since."""

    at: datetime
    accounts: int
    found: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


class AccountWriter:
    """The port of whoever refreshes accounts, or has one forgotten."""

    def __init__(self, database: Database, clock: LedgerClock, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._clock = clock
        self._scope = scope

    @contextmanager
    def turn(self, source: str, requests_per_day: int | None = None) -> Iterator[AccountTurn]:
        """Have the turn to ask a source while the block lasts; Conflict if another has it.

        What that costs is counted in the source's budget, if that has room for it.
        """
        name = f"accounts/{'/'.join(self._scope)}/{source}"
        holder = uuid4().hex

        def claim(connection: Connection) -> tuple[datetime, int, list[int]]:
            if requests_per_day is not None:
                lock_lanes(connection, (), {})  # whoever claims work spends of the same budget
            at = self._clock.now(connection)
            claimed = leases.claim(connection, [name], holder, at, TURN)
            if name not in claimed:
                until = leases.find(connection, name).expires_at
                raise Conflict(
                    f"another is asking {source} for its accounts, and has its turn until {until}",
                    remedy="Let it end; if it died, try again after that time. Nothing is lost.",
                )
            if not _has_room(connection, source, requests_per_day, at):
                return at, claimed[name], []
            cost = budgets.reserve(connection, {(source, Lane.FRESH): REQUESTS}, holder, at + TURN)
            return at, claimed[name], [each.id for each in cost]

        at, fence, cost = self._database.write(claim)
        turn = AccountTurn(self._database, self._scope, source, at, has_room=bool(cost))

        def end(connection: Connection) -> None:
            made = dict.fromkeys(cost, REQUESTS if turn.asked else 0)
            budgets.settle(connection, made, self._clock.now(connection))
            leases.release(connection, {name: fence})

        try:
            yield turn
        finally:
            self._database.write(end)

    def forget(self, source: str, customer_id: str, *, actor: str, reason: str) -> Sighting:
        """Expect nothing more of an account that has vanished; Conflict if it is there."""
        for field, value in (("actor", actor), ("reason", reason)):
            check_text(field, value)

        def work(connection: Connection) -> Sighting:
            known = {each.customer_id: each for each in read_known(connection, self._scope, source)}
            found = known.get(customer_id)
            if found is None:
                raise NotFound(
                    f"{source} never told of an account {customer_id}",
                    remedy="`sealbook accounts list` shows those that it told of.",
                )
            if found.presence is not Presence.VANISHED:
                raise Conflict(
                    f"account {customer_id} of {source} has not vanished: it is {found.presence}",
                    remedy="To expect nothing of one that is there, `exclude` it in the settings.",
                )
            at = self._clock.now(connection, not_before=found.history[-1].at)
            forgotten = Sighting(at, found.account, Presence.FORGOTTEN, actor, reason)
            _add(connection, self._scope, source, [forgotten])
            return forgotten

        return self._database.write(work)


class AccountTurn:
    """What may be done in a turn: what the source says is of the moment at which the turn began."""

    def __init__(
        self, database: Database, scope: Scope, source: str, at: datetime, *, has_room: bool
    ) -> None:
        self._database = database
        self._scope = scope
        self._source = source
        self.at = at
        self.has_room = has_room
        """Whether the source's budget allows to ask."""
        self.asked = False
        """Whether the source was asked: else nothing is counted in its budget."""

    def check_room(self) -> None:
        """Refuse to ask where the budget does not allow it."""
        if not self.has_room:
            raise QuotaExceeded(
                f"the budget of {self._source} has no room left to ask for its accounts",
                scope=QuotaScope.SOURCE,
                remedy="Try later: `sealbook control budget` shows what is spent.",
            )

    def refresh(self) -> Refresh:
        """Return how refreshes of the source stand: another may have made one since that was asked last."""
        with self._database.read() as connection:
            return read_refresh(connection, self._scope, self._source)

    def record(self, root: str, seen: Iterable[DiscoveredAccount]) -> Refreshed:
        """Note all that the source tells of below a root; one that others have overtaken adds nothing."""
        told = list(seen)

        def work(connection: Connection) -> Refreshed:
            before = self._lock(connection)
            known = {
                each.customer_id: each.history for each in read_known(connection, self._scope, self._source)
            }
            added = sightings_of(known, told, self.at, before.refreshed_at)
            _add(connection, self._scope, self._source, added)
            if before.refreshed_at is None or before.refreshed_at < self.at:
                self._note(connection, Refresh(self._source, root, self.at))
            seen_now = [each for each in added if each.presence is Presence.SEEN]
            return Refreshed(
                self.at,
                len({each.customer_id for each in told}),
                tuple(each.account.customer_id for each in seen_now if each.account.customer_id not in known),
                tuple(each.account.customer_id for each in seen_now if each.account.customer_id in known),
                tuple(each.account.customer_id for each in added if each.presence is Presence.VANISHED),
            )

        return self._database.write(work)

    def fail(self, error: str) -> Refresh:
        """Note that the source was asked in vain; what is known of accounts stays."""

        def work(connection: Connection) -> Refresh:
            before = self._lock(connection)
            failed = Refresh(
                self._source, before.root, before.refreshed_at, self.at, before.failures + 1, error
            )
            self._note(connection, failed)
            return failed

        return self._database.write(work)

    def _lock(self, connection: Connection) -> Refresh:
        """Return how refreshes stand, in a transaction in which no other changes that."""
        row = {**self._scope._asdict(), "source": self._source, "failures": 0}
        insert_into = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        statement = insert_into(account_refresh).values(row)
        # An update of nothing: it takes the row's lock, be it there or not.
        same = {"failures": account_refresh.c.failures}
        connection.execute(
            statement.on_conflict_do_update(index_elements=account_refresh.primary_key, set_=same)
        )
        return read_refresh(connection, self._scope, self._source)

    def _note(self, connection: Connection, refresh: Refresh) -> None:
        values = asdict(refresh)
        here = [account_refresh.c[name] == value for name, value in self._scope._asdict().items()]
        here.append(account_refresh.c.source == values.pop("source"))
        connection.execute(account_refresh.update().where(*here).values(values))


def _has_room(connection: Connection, source: str, requests_per_day: int | None, at: datetime) -> bool:
    if requests_per_day is None:
        return True
    used = sum(number for (name, _), number in budgets.used(connection, at).items() if name == source)
    return used + REQUESTS <= requests_per_day


def _add(connection: Connection, scope: Scope, source: str, sightings: Iterable[Sighting]) -> None:
    rows: list[dict[str, Any]] = [
        {
            **scope._asdict(),
            **asdict(each.account),
            "labels": list(each.account.labels),
            "source": source,
            "at": each.at,
            "presence": each.presence.value,
            "actor": each.actor,
            "reason": each.reason,
        }
        for each in sightings
    ]
    if rows:
        connection.execute(insert(account_sighting), rows)
