"""When a day should be materialized again, because its source restates it (R-PST-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.auto_due import AgeDrift, AutoDue, learn_due

_DAY = timedelta(days=1)
_EVER = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)
"""The last moment that Python knows: what would come later never does."""


class Window(NamedTuple):
    """From when to when a day lasts in its time zone, in UTC: 23 or 25 hours where clocks are set."""

    begins_at: datetime
    ends_at: datetime

    @classmethod
    def of(cls, day: date, zone: tzinfo) -> Window:
        """Return the window of a day; the first one of the calendar begins when Python's time does."""
        begins_at = _EVER if day == date.min else day_end(day - _DAY, zone)
        return cls(begins_at, day_end(day, zone))


class Deadline(NamedTuple):
    """A due point, and the moment by which the day should have been materialized at it or later."""

    point: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Freshness:
    """A policy: due points after the end of a day, and how late a materialization may be at each.

    Points that are learned have the way in which they are (`auto`), and why they are these (`reasons`).
    """

    due: tuple[timedelta, ...]
    max_lag: timedelta = timedelta()
    auto: AutoDue | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.due:
            raise InvalidInput.of("due", self.due, "at least one point after the end of the day")
        if list(self.due) != sorted(set(self.due)):
            raise InvalidInput(
                "due points are not in ascending order",
                field="due",
                remedy="Give the earliest first, each once.",
            )
        for field, span in (("due", self.due[0]), ("max_lag", self.max_lag)):
            if span < timedelta():
                raise InvalidInput.of(field, span, "no negative span")

    @classmethod
    def learned(
        cls, auto: AutoDue, max_lag: timedelta, observed: Mapping[timedelta, AgeDrift] = MappingProxyType({})
    ) -> Freshness:
        """Return a policy whose points follow from what was observed; without that, the usual ones hold."""
        found = learn_due(auto, observed)
        return cls(found.due, max_lag, auto, found.reasons)

    def deadline(self, end: datetime, now: datetime) -> Deadline | None:
        """Return the deadline that counts: the latest that has passed; None before the first.

        `end` is that of the day. Until the deadline of a later point has passed, that of an earlier one still
        counts: a day that is late does not turn fresh because it is due once more.
        """
        for point in reversed(self.due):
            deadline = Deadline(later(end, point), later(end, point + self.max_lag))
            if deadline.at <= now:
                return deadline
        return None

    def next_point(self, end: datetime, after: datetime) -> datetime | None:
        """Return the first due point after a moment; None once there is none left."""
        return next((at for at in (later(end, point) for point in self.due) if at > after), None)

    def is_settled(self, end: datetime, materialized_at: datetime) -> bool:
        """Tell whether a materialization is the last that is due."""
        return materialized_at >= later(end, self.due[-1])


def day_end(day: date, zone: tzinfo) -> datetime:
    """Return the moment at which a day is over in a time zone, in UTC: the first midnight after it.

    Where clocks skip that midnight, it is the moment at which they would have shown it.
    """
    if day == date.max:
        return _NEVER
    return datetime.combine(day + _DAY, time(), zone).astimezone(UTC)


@lru_cache
def last_ended(now: datetime, zone: tzinfo) -> date:
    """Return the last day that is over in a time zone: by `day_end`, so that the two never disagree."""
    day = now.astimezone(zone).date()  # over already, where clocks have gone back past midnight
    while day_end(day, zone) > now:
        day -= _DAY
    return day


def today(now: datetime, zone: tzinfo) -> date:
    """Return the day that has begun in a time zone and is not over."""
    return last_ended(now, zone) + _DAY


def later(moment: datetime, span: timedelta) -> datetime:
    """Return the moment that comes a span after another."""
    return moment + span if span <= _NEVER - moment else _NEVER
