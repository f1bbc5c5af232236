"""What has stopped, as it is listed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey
from sealbook.model.retry import Stop

_WHY = {
    Stop.MAX_ATTEMPTS: "it failed too often",
    Stop.MAX_AGE: "its day is too old",
    Stop.PAST_HORIZON: "its source does not give its day any more",
    Stop.PERMANENT: "it fails until something is changed",
}


@dataclass(frozen=True, slots=True)
class StoppedRow:
    """A partition that nothing more is tried of by itself."""

    key: PartitionKey
    kind: Literal["terminal", "parked"]
    stop: Stop
    reason: str | None
    """What an operator said."""
    actor: str | None
    since: datetime | None
    tries: int
    error: str | None
    plan_id: int | None

    @classmethod
    def of(cls, found: OpenWork) -> StoppedRow:
        """Make a row of work that has stopped."""
        work = found.work
        if work.stop is None:
            raise AssertionError(f"{found.key} has not stopped")
        return cls(
            found.key,
            "terminal" if work.stop.terminal else "parked",
            work.stop,
            found.stopped_reason,
            found.stopped_by,
            found.stopped_at,
            work.tries,
            work.error,
            found.plan_id,
        )

    @property
    def why(self) -> str:
        """Why nothing more is tried, in words."""
        return self.reason or _WHY.get(self.stop, self.stop)

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of its key first."""
        fields = asdict(self)
        del fields["key"]
        return {**asdict(self.key), **fields}
