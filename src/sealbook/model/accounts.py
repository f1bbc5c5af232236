"""Accounts that a source tells of: as they were seen, time after time, and which are new, changed or gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from sealbook.errors import InvalidInput
from sealbook.model.verdict import check_text


@dataclass(frozen=True, slots=True)
class DiscoveredAccount:
    """An account as its source tells of it; what the source does not know is None."""

    customer_id: str
    name: str | None = None
    status: str = "enabled"
    """In the source's own word; whether the account is open is said by `is_open`."""
    is_open: bool = True
    """False once the account is closed or cancelled: nothing more comes of it."""
    is_manager: bool = False
    """A manager has accounts below it, and no rows of its own."""
    is_hidden: bool = False
    level: int = 0
    """How far below the root it is."""
    time_zone: str | None = None
    currency: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("name", "time_zone", "currency"):
            if getattr(self, field) is not None:
                check_text(field, getattr(self, field))
        check_text("status", self.status)
        if not isinstance(self.level, int) or self.level < 0:
            raise InvalidInput.of("level", self.level, "a whole number from 0")
        for label in self.labels:
            check_text("label", label)
        object.__setattr__(self, "labels", tuple(sorted({*self.labels})))


class Presence(StrEnum):
    """Whether an account was there when its source was asked."""

    SEEN = "seen"
    VANISHED = "vanished"
    """The source told of others, and not of it. That is reported, and it stays expected."""
    FORGOTTEN = "forgotten"
    """An operator said so of one that had vanished."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An account from a moment on, up to its next sighting; one that is gone is as it was seen last."""

    at: datetime
    account: DiscoveredAccount
    presence: Presence = Presence.SEEN
    actor: str | None = None
    """Who had it forgotten, and why."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a sighting says that the one before it did not."""

    at: datetime
    customer_id: str
    what: str
    """`found`, `vanished`, `forgotten`, `back`, or the field that is another."""
    before: str | None = None
    after: str | None = None
    """Of what is forgotten, the reason."""
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """An account with all that was ever seen of it, the earliest first; there is at least one sighting."""

    history: tuple[Sighting, ...]

    @property
    def account(self) -> DiscoveredAccount:
        """The account as it was seen last."""
        return self.history[-1].account

    @property
    def customer_id(self) -> str:
        """Its id."""
        return self.account.customer_id

    @property
    def presence(self) -> Presence:
        """Whether it is there."""
        return self.history[-1].presence

    @property
    def found_at(self) -> datetime:
        """When it was seen first."""
        return self.history[0].at

    @property
    def vanished_at(self) -> datetime | None:
        """Since when it is not told of any more, be it forgotten or not; None if it is there."""
        gone = None
        for each in self.history:
            gone = None if each.presence is Presence.SEEN else gone or each.at
        return gone

    def changes(self) -> list[Change]:
        """Return what changed, and when, in order."""
        found = [Change(self.found_at, self.customer_id, "found")]
        for before, after in pairwise(self.history):
            if after.presence is not before.presence:
                what = "back" if after.presence is Presence.SEEN else after.presence.value
                found.append(Change(after.at, self.customer_id, what, None, after.reason, after.actor))
            found += (
                Change(after.at, self.customer_id, field, _text(was), _text(is_))
                for field in _FIELDS
                if (was := getattr(before.account, field)) != (is_ := getattr(after.account, field))
            )
        return found


_FIELDS = tuple(each.name for each in fields(DiscoveredAccount) if each.name != "customer_id")


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(value) or None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)


def sightings_of(
    known: Mapping[str, Sequence[Sighting]],
    seen: Iterable[DiscoveredAccount],
    at: datetime,
    latest: datetime | None,
) -> list[Sighting]:
    """Return what a refresh adds to what is known: nothing of those that are as they were seen last.

    `at` is when its source was asked, and `latest` when it was for what is known: an answer that comes late,
    or again, adds nothing, whatever it says.
    """
    if latest is not None and at <= latest:
        return []
    told = {each.customer_id: each for each in sorted(seen, key=lambda each: -each.level)}
    added = [
        Sighting(at, account)
        for customer_id, account in sorted(told.items())
        if not (history := known.get(customer_id))
        or (history[-1].presence, history[-1].account) != (Presence.SEEN, account)
    ]
    added += (
        Sighting(at, history[-1].account, Presence.VANISHED)
        for customer_id, history in sorted(known.items())
        if customer_id not in told and history[-1].presence is Presence.SEEN
    )
    return added
