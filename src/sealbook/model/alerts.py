"""What somebody should look at: told once when it begins, and once when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AlertKind(StrEnum):
    """What is wrong, the worst first."""

    WITHDRAWN = "withdrawn"
    """Consumers cannot read any more what they could read before."""
    LATE = "late"
    """A partition was not materialized by its deadline."""
    TERMINAL = "terminal"
    """A partition is given up (R-CTL-5)."""
    PARKED = "parked"
    """A partition failed for good, and waits for somebody."""
    ACCOUNT_MISSING = "account_missing"
    """A source does not tell of an account any more from which days are expected."""
    ACCOUNT_ZONE_UNKNOWN = "account_zone_unknown"
    """An account has a time zone that nobody knows here."""
    ACCOUNTS_NOT_REFRESHED = "accounts_not_refreshed"
    """A source could not be asked which accounts there are."""
    PROJECTOR_LAG_HIGH = "PROJECTOR_LAG_HIGH"
    """What is shown is far behind the log (R-EVT-9)."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that is wrong now. One kind and subject is one cause, however often it is looked at."""

    kind: AlertKind
    subject: str
    """The partition that it is about, the account, the source, or the projection."""
    since: datetime | None
    message: str
    command: str
    """What says more, or would change it."""

    @property
    def cause(self) -> tuple[AlertKind, str]:
        """What makes it the same alert the next time."""
        return self.kind, self.subject


class NoticeState(StrEnum):
    """What a notice says of its alert: that it is there, or that it is over."""

    RAISED = "raised"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a receiver is told, once: it may come again only if the sender died before it could note that."""

    position: int
    alert_id: str
    state: NoticeState
    raised_at: datetime
    resolved_at: datetime | None
    alert: Alert

    @property
    def id(self) -> str:
        """By which a receiver knows one that comes again."""
        return f"{self.alert_id}/{self.state}"

    def to_dict(self) -> dict[str, object]:
        """Return the object that the receiver gets."""
        alert = self.alert
        return {
            "id": self.id,
            "state": self.state,
            "kind": alert.kind,
            "subject": alert.subject,
            "since": alert.since,
            "message": alert.message,
            "command": alert.command,
            "raised_at": self.raised_at,
            "resolved_at": self.resolved_at,
        }
