"""Pauses: a source, or a customer or a query of one, of which nothing is claimed for now (R-CTL-7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, or_, select

from sealbook.errors import NotFound, QuotaScope
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.work.tables import pause
from sealbook.model.partition_events import PartitionFailed
from sealbook.model.retry import RetryPolicies
from sealbook.model.selection import Selection


class PauseCause(StrEnum):
    """Who paused: an operator, or a source that said that a quota is used up."""

    OPERATOR = "operator"
    QUOTA = "quota"


@dataclass(frozen=True, slots=True)
class Scope:
    """All of a source, or what a customer has of it, or a query, or both."""

    source: str
    customer_id: str | None = None
    query_name: str | None = None

    def __str__(self) -> str:
        return "/".join((self.source, self.customer_id or "*", self.query_name or "*"))

    @property
    def selection(self) -> Selection:
        """The partitions of it."""
        return Selection(source=self.source, customers=self.customer_id, queries=self.query_name)


@dataclass(frozen=True, slots=True)
class Pause:
    """A scope that waits: until when (for good if None), since when, who says so and why."""

    id: int
    scope: Scope
    cause: PauseCause
    until: datetime | None
    since: datetime
    actor: str
    reason: str


def read_pauses(connection: Connection, at: datetime) -> list[Pause]:
    """Return the pauses that hold."""
    query = select(pause).where(or_(pause.c.until.is_(None), pause.c.until > at)).order_by(pause.c.id)
    return [
        Pause(number, Scope(*scope), PauseCause(cause), until, since, actor, reason)
        for number, *scope, cause, until, since, actor, reason in map(tuple, connection.execute(query))
    ]


def add_pause(
    connection: Connection,
    scope: Scope,
    cause: PauseCause,
    *,
    until: datetime | None,
    at: datetime,
    actor: str,
    reason: str,
) -> None:
    """Pause a scope, in the place of an earlier pause of it for the same cause."""
    remove_pauses(connection, scope, cause)
    connection.execute(
        insert(pause).values(
            source=scope.source,
            customer_id=scope.customer_id,
            query_name=scope.query_name,
            cause=cause.value,
            until=until,
            since=at,
            actor=actor,
            reason=reason,
        )
    )


def remove_pauses(connection: Connection, scope: Scope, cause: PauseCause | None = None) -> int:
    """End the pauses of exactly this scope, or those of one cause, and return how many there were."""
    names = ("source", "customer_id", "query_name")
    values = (getattr(scope, name) for name in names)
    same = [pause.c[name].is_not_distinct_from(value) for name, value in zip(names, values, strict=True)]
    of_cause = [] if cause is None else [pause.c.cause == cause.value]
    return len(connection.execute(delete(pause).where(*same, *of_cause).returning(pause.c.id)).all())


def pause_for_quota(
    connection: Connection, failures: Iterable[PartitionFailed], retries: RetryPolicies, at: datetime
) -> None:
    """Pause the accounts or sources whose quota is used up, until the time that the source named.

    A pause is never cut short: what was asked before it began may be answered after it, with less of a wait.
    """
    until: dict[Scope, tuple[datetime, str]] = {}
    for failure in failures:
        key = failure.key
        wait = failure.retry_after or retries.of(key.source, key.query_name).backoff[0].total_seconds()
        ends = (at + timedelta(seconds=wait), failure.error)
        whole_source = failure.quota_scope is QuotaScope.SOURCE
        scope = Scope(key.source) if whole_source else Scope(key.source, key.customer_id)
        until[scope] = max(ends, until.get(scope, ends))
    if not until:
        return
    held = {each.scope: each.until for each in read_pauses(connection, at) if each.cause is PauseCause.QUOTA}
    for scope, (end, error) in until.items():
        if end > (held.get(scope) or at):
            add_pause(connection, scope, PauseCause.QUOTA, until=end, at=at, actor=scope.source, reason=error)


class PauseWriter:
    """The port of operators who pause a scope; both ways are logged with who and why."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def pause(self, scope: Scope, *, actor: str, reason: str, until: datetime | None = None) -> None:
        """Claim nothing of a scope until a time, or until it resumes; what is being worked on goes on."""
        check_author(actor, reason)
        end = None if until is None else until.isoformat()
        said: dict[str, object] = {"scope": str(scope), "until": end}

        def hold(connection: Connection) -> None:
            at = self._clock.now(connection)
            add_pause(connection, scope, PauseCause.OPERATOR, until=until, at=at, actor=actor, reason=reason)
            log_override(connection, Action.PAUSE, [], actor=actor, reason=reason, at=at, filter=said)

        self._database.write(hold)

    def resume(self, scope: Scope, *, actor: str, reason: str) -> None:
        """End the pauses of exactly this scope: an operator's, and one for a quota."""
        check_author(actor, reason)

        def go_on(connection: Connection) -> None:
            if not remove_pauses(connection, scope):
                remedy = "`sealbook control pauses` lists what is: name it as it was paused."
                raise NotFound(f"{scope} is not paused", remedy=remedy)
            at = self._clock.now(connection)
            said: dict[str, object] = {"scope": str(scope)}
            log_override(connection, Action.RESUME, [], actor=actor, reason=reason, at=at, filter=said)

        self._database.write(go_on)
