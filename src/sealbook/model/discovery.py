"""Which of the accounts that a source tells of are expected, from which day on, in which time zone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from itertools import pairwise

from sealbook.model.accounts import DiscoveredAccount, KnownAccount, Presence
from sealbook.model.freshness import today
from sealbook.model.universe import Account, EarlierZone

BACKFILL = timedelta(days=30)
"""How many days before it was found an account begins, where nothing else is said."""

_DAY = timedelta(days=1)

Zones = Callable[[str], tzinfo | None]
"""Finds a time zone by its name; None if there is none."""


@dataclass(frozen=True, slots=True)
class Override:
    """What the settings say of an account, whatever its source tells."""

    zone: tzinfo | None = None
    first_day: date | None = None
    last_day: date | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """The accounts below a root, and which of them are wanted."""

    root: str
    include: frozenset[str] | None = None
    """Only these; None: all."""
    exclude: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    """Only those that carry one of these; none: all."""
    backfill: timedelta | None = None
    every: timedelta = _DAY
    """How often the source is asked."""
    overrides: Mapping[str, Override] = field(default_factory=dict)
    usual: Account = field(default_factory=lambda: Account("any"))
    """What holds for accounts of which neither their source nor an override says anything."""

    def why_not(self, account: DiscoveredAccount) -> str | None:
        """Say why nothing more is expected of an account; None if it is wanted."""
        if self._is_barred(account.customer_id):
            return "excluded" if account.customer_id in self.exclude else "not included"
        if account.is_manager:
            return "a manager"
        if not account.is_open:
            return account.status
        if self.labels and self.labels.isdisjoint(account.labels):
            return "has none of the labels"
        return None

    def accounts(self, known: Iterable[KnownAccount], zones: Zones) -> dict[str, Account]:
        """Return the accounts that are expected for some days, by customer."""
        found = (self.account(each, zones) for each in known)
        return {each.customer_id: each for each in found if each is not None}

    def account(self, known: KnownAccount, zones: Zones) -> Account | None:
        """Return which days are expected of an account: None for no days at all.

        They begin some days before it was found, and end before the day on which it was seen closed or
        without its labels. One that vanished goes on, until an operator has it forgotten.
        """
        began, ended = self._wanted(known)
        if began is None or self._is_barred(known.customer_id):
            return None
        override = self.overrides.get(known.customer_id, Override())
        calendar = self._calendar(known, zones) if override.zone is None else [(date.min, override.zone)]
        if not calendar:
            return None
        first = override.first_day or self._first_day(today(began, _zone_at(calendar, began)))
        last = override.last_day or self.usual.last_day
        if ended is not None:
            closed = today(ended, _zone_at(calendar, ended)) - _DAY
            last = closed if last is None else min(last, closed)
        if last is not None and last < first:
            return None
        earlier = tuple(EarlierZone(before, zone) for (_, zone), (before, _) in pairwise(calendar))
        return Account(known.customer_id, calendar[-1][1], first, last, earlier)

    def _is_barred(self, customer_id: str) -> bool:
        """Tell whether the settings do not want an account, whatever it is like; nor its past."""
        return customer_id in self.exclude or (self.include is not None and customer_id not in self.include)

    def _first_day(self, found: date) -> date:
        usual = self.usual.first_day
        if self.backfill is None and usual is not None:
            return usual
        window = BACKFILL if self.backfill is None else self.backfill
        first = found - min(window, found - date.min)
        return first if usual is None else max(first, usual)

    def _wanted(self, known: KnownAccount) -> tuple[datetime | None, datetime | None]:
        """Return from when on an account was wanted for the first time, and since when it is not any more."""
        began = ended = gone = None
        for each in known.history:
            if each.presence is Presence.VANISHED:
                gone = each.at
            elif each.presence is Presence.FORGOTTEN:
                ended = ended or gone or each.at
            elif self.why_not(each.account) is None:
                began, ended = began or each.at, None
            elif began is not None:
                ended = ended or each.at
        return began, ended

    def _calendar(self, known: KnownAccount, zones: Zones) -> list[tuple[date, tzinfo]]:
        """Return from which day on days are those of which time zone: of the day on which that was seen."""
        found: list[tuple[date, tzinfo]] = []
        for each in known.history:
            name = each.account.time_zone
            zone = self.usual.zone if name is None else zones(name)
            if zone is None:
                continue
            since = today(each.at, zone) if found else date.min
            while found and found[-1][0] >= since:  # it was another for less than a day
                del found[-1]
            if not found or found[-1][1] != zone:
                found.append((since, zone))
        return found


def _zone_at(calendar: list[tuple[date, tzinfo]], at: datetime) -> tzinfo:
    return next((zone for since, zone in reversed(calendar) if since <= today(at, zone)), calendar[0][1])


def unknown_zone(known: KnownAccount, zones: Zones) -> str | None:
    """Return the time zone that an account is told to have and that nobody knows, if it is one."""
    name = known.account.time_zone
    return name if name is not None and zones(name) is None else None
