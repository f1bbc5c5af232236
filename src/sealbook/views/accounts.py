"""Accounts that were discovered: as they are, what became of them, and what somebody should look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import NamedTuple

from sealbook.config import SourceSettings, find_zone
from sealbook.ledger.accounts import AccountReader, Refreshed
from sealbook.model.accounts import Change, Presence
from sealbook.model.freshness import today
from sealbook.status.accounts import account_problems


class AccountLine(NamedTuple):
    """An account as it was seen last, and which days of it are expected."""

    source: str
    customer_id: str
    name: str | None
    status: str
    presence: str
    is_manager: bool
    is_hidden: bool
    level: int
    time_zone: str | None
    currency: str | None
    labels: tuple[str, ...]
    found_at: datetime
    vanished_at: datetime | None
    first_day: date | None
    last_day: date | None
    expected: bool
    """Whether days of now are expected of it."""
    why_not: str | None
    problem: str | None


class AccountEvent(NamedTuple):
    """Something that changed of an account; for a time zone, from which day on it holds."""

    at: datetime
    source: str
    customer_id: str
    what: str
    before: str | None
    after: str | None
    actor: str | None
    from_day: date | None


class RefreshLine(NamedTuple):
    """What came of asking a source for its accounts."""

    source: str
    at: datetime
    accounts: int
    found: tuple[str, ...]
    changed: tuple[str, ...]
    vanished: tuple[str, ...]

    @classmethod
    def of(cls, source: str, done: Refreshed) -> RefreshLine:
        """Return it for a source."""
        return cls(source, done.at, done.accounts, done.found, done.changed, done.vanished)


def account_lines(reader: AccountReader, sources: Iterable[SourceSettings]) -> Iterator[AccountLine]:
    """Yield every account of some sources, those that nothing is expected of too."""
    for source in sources:
        discovery = source.discovery
        if discovery is None:
            continue
        known = reader.known(source.name)
        problems = {each.customer_id: each.message for each in account_problems(source, known)}
        for each in known:
            account, days = each.account, discovery.account(each, find_zone)
            why_not = "forgotten" if each.presence is Presence.FORGOTTEN else discovery.why_not(account)
            yield AccountLine(
                source.name,
                each.customer_id,
                account.name,
                account.status,
                each.presence.value,
                account.is_manager,
                account.is_hidden,
                account.level,
                account.time_zone,
                account.currency,
                account.labels,
                each.found_at,
                each.vanished_at,
                None if days is None else days.first_day,
                None if days is None else days.last_day,
                days is not None and why_not is None,
                why_not,
                problems.get(each.customer_id),
            )


def account_events(reader: AccountReader, sources: Iterable[SourceSettings]) -> list[AccountEvent]:
    """Return everything that changed of the accounts of some sources, in the order of time."""
    found = [
        AccountEvent(
            each.at,
            source.name,
            each.customer_id,
            each.what,
            each.before,
            each.after,
            each.actor,
            _from_day(each),
        )
        for source in sources
        if source.discovery is not None
        for known in reader.known(source.name)
        for each in known.changes()
    ]
    return sorted(found, key=lambda event: (event.at, event.source, event.customer_id))


def _from_day(change: Change) -> date | None:
    zone = None if change.what != "time_zone" or change.after is None else find_zone(change.after)
    return None if zone is None else today(change.at, zone)
