"""Alerts and their outbox: what is wrong is noted once, and waits until a receiver has taken it.

Who raises alerts and sends them does so in a turn, under a lease: two at once neither raise one twice nor
send it twice. What was sent is marked after the receiver took it, so that nothing is lost; who dies in
between has told something that the next one tells again, under the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from sealbook.ledger.db.alert_tables import alert, alert_notice
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.turns import Turn, have_turn
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.model.alerts import Alert, AlertKind, Notice, NoticeState
from sealbook.model.scope import DEFAULT_SCOPE, Scope

KEPT = timedelta(days=90)
"""How long an alert that is over is kept, for whoever looks back."""

_ALERT = ("kind", "subject", "since", "message", "command")


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many alerts are new, and how many are over."""

    raised: int
    resolved: int


class AlertWriter:
    """The port of whoever raises alerts and sends them."""

    def __init__(self, database: Database, clock: LedgerClock, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._clock = clock
        self._scope = scope

    @contextmanager
    def turn(self) -> Iterator[AlertTurn]:
        """Have a turn while the block lasts; Conflict if another has it."""
        name = f"alerts/{'/'.join(self._scope)}"
        with have_turn(self._database, self._clock, name, "alerts") as turn:
            yield AlertTurn(self._database, self._scope, turn)


class AlertTurn:
    """What may be done in a turn; Conflict once it is lost."""

    def __init__(self, database: Database, scope: Scope, turn: Turn) -> None:
        self._database = database
        self._scope = scope._asdict()
        self._renew = turn.renew

    def record(self, alerts: Iterable[Alert]) -> Recorded:
        """Note all that is wrong now: what is new is to be told, and so is what is over."""
        found = {each.cause: each for each in alerts}

        def work(connection: Connection) -> Recorded:
            at = self._renew(connection)
            known = {
                (AlertKind(row.kind), row.subject): row.id
                for row in connection.execute(_OPEN, self._scope)
                if row.kind in list(AlertKind)  # one that a later version raised is not ours to end
            }
            new = [(uuid4().hex, each) for cause, each in found.items() if cause not in known]
            over = [alert_id for cause, alert_id in known.items() if cause not in found]
            if new:
                connection.execute(insert(alert), [self._row(alert_id, each, at) for alert_id, each in new])
            if over:
                connection.execute(_RESOLVE, [{"of": alert_id, "at": at} for alert_id in over])
            told = [(alert_id, NoticeState.RAISED) for alert_id, _ in new]
            told += [(alert_id, NoticeState.RESOLVED) for alert_id in over]
            if told:
                connection.execute(insert(alert_notice), [self._notice(*each) for each in told])
            return Recorded(len(new), len(over))

        return self._database.write(work)

    def waiting(self, limit: int) -> list[Notice]:
        """Return the first that nobody has been told yet, and renew the turn for the time that takes."""

        def work(connection: Connection) -> list[Notice]:
            self._renew(connection)
            return [_notice(row) for row in connection.execute(_WAITING.limit(limit), self._scope)]

        return self._database.write(work)

    def mark_sent(self, notices: Iterable[Notice]) -> None:
        """Note that a receiver has taken these."""
        positions = [each.position for each in notices]

        def work(connection: Connection) -> None:
            at = self._renew(connection)
            connection.execute(_MARK, [{"of": position, "at": at} for position in positions])

        self._database.write(work, repeatable=True)

    def prune(self) -> int:
        """Remove what is over and was told long ago; return how many alerts that were."""

        def work(connection: Connection) -> int:
            before = {**self._scope, "before": self._renew(connection) - KEPT}
            over = connection.execute(_PRUNE, before).rowcount
            if over:
                connection.execute(_PRUNE_NOTICES, self._scope)
            return over

        return self._database.write(work)

    def _row(self, alert_id: str, each: Alert, at: datetime) -> dict[str, object]:
        fields = {name: getattr(each, name) for name in _ALERT}
        return {**self._scope, **fields, "kind": each.kind.value, "id": alert_id, "raised_at": at}

    def _notice(self, alert_id: str, state: NoticeState) -> dict[str, object]:
        return {**self._scope, "alert_id": alert_id, "state": state.value}


def _of_scope(table: Any) -> list[Any]:
    return [table.c[name] == bindparam(name) for name in ("tenant_id", "workspace_id")]


_OPEN = select(alert.c.id, alert.c.kind, alert.c.subject).where(
    *_of_scope(alert), alert.c.resolved_at.is_(None)
)
_RESOLVE = update(alert).where(alert.c.id == bindparam("of")).values(resolved_at=bindparam("at"))
_UNSENT = (*_of_scope(alert_notice), alert_notice.c.sent_at.is_(None))
_WAITING = (
    select(alert_notice.c.position, alert_notice.c.state, alert)
    .join(alert, alert.c.id == alert_notice.c.alert_id)
    .where(*_UNSENT)
    .order_by(alert_notice.c.position)
)
_MARK = update(alert_notice).where(alert_notice.c.position == bindparam("of")).values(sent_at=bindparam("at"))


_TOLD = ~exists().where(alert_notice.c.alert_id == alert.c.id, alert_notice.c.sent_at.is_(None))
_PRUNE = (
    delete(alert)
    .where(*_of_scope(alert), alert.c.resolved_at < bindparam("before", type_=UtcTimestamp), _TOLD)
    .execution_options(preserve_rowcount=True)
)
_PRUNE_NOTICES = delete(alert_notice).where(
    *_of_scope(alert_notice), alert_notice.c.alert_id.not_in(select(alert.c.id))
)


def _notice(row: Any) -> Notice:
    state = NoticeState(row.state)
    told = Alert(AlertKind(row.kind), row.subject, row.since, row.message, row.command)
    # When it was raised it was not over, whatever happened since: a repeat says the same as the first.
    resolved_at = row.resolved_at if state is NoticeState.RESOLVED else None
    return Notice(row.position, row.id, state, row.raised_at, resolved_at, told)
