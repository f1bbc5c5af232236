"""What is to be done next about a partition: when and why, or why not; and who is at it (R-CTL-2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from sealbook.model.explanation import Way
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.retry import Cause, Stop
from sealbook.model.work import Lane, WorkKind


class Prospect(StrEnum):
    """What keeps open work from being done: nothing, its time, somebody who pauses it or is at it, or all."""

    HELD = "held"
    """Somebody works on it, under a lease."""
    TERMINAL = "terminal"
    """It is given up (R-CTL-5)."""
    PARKED = "parked"
    """It failed for good, and waits for an operator or the configuration."""
    PAUSED = "paused"
    WAITING = "waiting"
    """Its time has not come."""
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is to be done next about a partition.

    `since`, `until` and `by` are those of the lease, the stop or the pause, whichever it is.
    """

    key: PartitionKey
    prospect: Prospect
    lane: Lane
    kind: WorkKind
    next_run_at: datetime | None
    """The earliest moment; None where that is for somebody to say."""
    why: str
    """Why then; or why not."""
    tries: int = 0
    """Failures in a row since the last success or operator's action."""
    failing_since: datetime | None = None
    cause: Cause | None = None
    error: str | None = None
    run_id: RunId | None = None
    stop: Stop | None = None
    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    plan_id: int | None = None
    ways: tuple[Way, ...] = ()
    """The commands that would change it."""

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, without its key and its ways."""
        fields = asdict(self)
        del fields["key"], fields["ways"]
        return fields

    @property
    def in_short(self) -> str:
        """What happens next, in a few words."""
        match self.prospect:
            case Prospect.HELD:
                return f"{self.by} is at it"
            case Prospect.TERMINAL:
                return "given up"
            case Prospect.PARKED:
                return "parked"
            case Prospect.PAUSED:
                return (
                    "paused" if self.next_run_at is None else f"paused until {self.next_run_at:%m-%d %H:%M}"
                )
            case Prospect.WAITING:
                return f"{self.lane} {self.next_run_at:%m-%d %H:%M}"
        return f"{self.lane} now"

    @property
    def sentence(self) -> str:
        """What happens next, when and why, in full."""
        since = "" if self.since is None else f" since {_time(self.since)}"
        match self.prospect:
            case Prospect.HELD:
                until = "" if self.until is None else f", under a lease until {_time(self.until)}"
                return f"{self.by} has been at it{since}: it {_DOES[self.kind]} it{until}."
            case Prospect.TERMINAL:
                by = "" if self.by is None else f" by {self.by}"
                return f"Nothing by itself: it is given up{by}{since}: {self.why}."
            case Prospect.PARKED:
                return f"Nothing by itself: it is parked{since}: {self.why}."
            case Prospect.PAUSED:
                by = "" if self.by is None else f" by {self.by}"
                until = "" if self.until is None else f" until {_time(self.until)}"
                return f"It is paused{by}{since}{until}: {self.why}."
            case Prospect.WAITING if self.next_run_at is not None:
                return f"From {_time(self.next_run_at)} on {self._loop}: {self.why}."
        return f"In its next round {self._loop}: {self.why}."

    @property
    def _loop(self) -> str:
        return f"a control loop {_DOES[self.kind]} it, in lane {self.lane}"


_DOES = {WorkKind.FETCH: "fetches", WorkKind.JUDGE: "judges", WorkKind.LOAD: "loads"}


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
