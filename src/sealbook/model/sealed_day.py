"""The day of a sealed run: its time zone, its window in UTC, and whether it was over when it was fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sealbook.model.universe import Account
from sealbook.model.wire import as_utc

DAY_OVER = "day_over"
"""The name of the check that says in a verdict when the day was."""

_FORM = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class SealedDay:
    """From when to when a day lasted where its account is; provisional if it was not over then."""

    time_zone: str
    begins_at: datetime
    ends_at: datetime
    provisional: bool

    @classmethod
    def of(cls, account: Account, day: date, asked_at: datetime) -> SealedDay:
        """Return the day of an account whose rows were asked for at a time."""
        window = account.window(day)
        return cls(str(account.zone_on(day)), *window, provisional=asked_at < window.ends_at)

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> SealedDay | None:
        """Read it from the fields of a seal; None if that has none, or another tool's of the same names."""
        zone, provisional = fields.get("time_zone"), fields.get("provisional")
        times = [fields.get(name) for name in ("day_begins_at", "day_ends_at")]
        if not isinstance(zone, str) or not isinstance(provisional, bool):
            return None
        try:
            begins_at, ends_at = (datetime.fromisoformat(str(each)).astimezone(UTC) for each in times)
        except (ValueError, OverflowError):
            return None
        return cls(zone, begins_at, ends_at, provisional)

    def to_fields(self) -> dict[str, object]:
        """Return the fields that a seal has of it."""
        return {
            "time_zone": self.time_zone,
            "day_begins_at": _text(self.begins_at),
            "day_ends_at": _text(self.ends_at),
            "provisional": self.provisional,
        }

    def __str__(self) -> str:
        return f"{self.begins_at:{_FORM}} … {self.ends_at:{_FORM}} UTC, a day of {self.time_zone}"


def _text(moment: datetime) -> str:
    return as_utc("time", moment).isoformat().replace("+00:00", "Z")
