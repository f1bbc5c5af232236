"""When a day should be materialized again, because its source restates it (R-PST-8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from sealbook.errors import InvalidInput

_DAY = timedelta(days=1)


class Deadline(NamedTuple):
    """A due point, and the moment by which the day should have been materialized at it or later."""

    point: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Freshness:
    """A policy: due points after the end of a day, and how late a materialization may be at each."""

    due: tuple[timedelta, ...]
    max_lag: timedelta = timedelta()

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

    def deadline(self, end: datetime, now: datetime) -> Deadline | None:
        """Return the deadline that counts: the latest that has passed; None before the first.

        `end` is that of the day. Until the deadline of a later point has passed, that of an earlier one still
        counts: a day that is late does not turn fresh because it is due once more.
        """
        passed = [point for point in self.due if end + point + self.max_lag <= now]
        return Deadline(end + passed[-1], end + passed[-1] + self.max_lag) if passed else None

    def next_point(self, end: datetime, after: datetime) -> datetime | None:
        """Return the first due point after a moment; None once there is none left."""
        return next((end + point for point in self.due if end + point > after), None)

    def is_settled(self, end: datetime, materialized_at: datetime) -> bool:
        """Tell whether a materialization is the last that is due."""
        return materialized_at >= end + self.due[-1]


def day_end(day: date, zone: tzinfo) -> datetime:
    """Return the moment at which a day is over in a time zone, in UTC."""
    return datetime.combine(day + _DAY, time(), zone).astimezone(UTC)


def last_ended(now: datetime, zone: tzinfo) -> date:
    """Return the last day that is over in a time zone."""
    return now.astimezone(zone).date() - _DAY
