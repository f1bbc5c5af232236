"""What a failure asks for: another try, a pause, or a person (R-CTL-7); and the last one of a partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from sealbook.errors import PastHorizon, QuotaExceeded, Transient
from sealbook.model.keys import RunId

if TYPE_CHECKING:
    from sealbook.model.partition_events import Stage


class ErrorClass(StrEnum):
    """A failure by what must happen before another try makes sense."""

    TRANSIENT = "transient"
    QUOTA = "quota"
    PERMANENT = "permanent"
    PAST_HORIZON = "past_horizon"
    """Nothing helps: the source does not give the day any more."""

    @classmethod
    def of(cls, error: Exception) -> ErrorClass:
        """Class an error by its type, never by its text."""
        if isinstance(error, QuotaExceeded):
            return cls.QUOTA
        if isinstance(error, PastHorizon):
            return cls.PAST_HORIZON
        return cls.TRANSIENT if isinstance(error, Transient) else cls.PERMANENT


@dataclass(slots=True)
class AttemptCounts:
    """How attempts at the partitions of a query have gone; runs that were judged again count once."""

    accepted: int = 0
    rejected: int = 0
    failed: Counter[ErrorClass] = field(default_factory=Counter)
    """Of extractions, by what they failed of."""

    @property
    def total(self) -> int:
        """Every attempt at what could be had; what a quota forbade was none (R-CTL-7)."""
        none = self.failed[ErrorClass.QUOTA] + self.failed[ErrorClass.PAST_HORIZON]
        return self.accepted + self.rejected + self.failed.total() - none


@dataclass(frozen=True, slots=True)
class LastFailure:
    """How the last attempt at a partition failed, where nothing has overtaken that since."""

    run_id: RunId
    stage: Stage
    at: datetime
    error_class: ErrorClass
    error: str
    retry_after: float | None = None

    def __str__(self) -> str:
        return (
            f"the last attempt, run {self.run_id}, failed in {self.stage} at {self.at:%Y-%m-%d %H:%M:%S} UTC"
            f" ({self.error_class}): {self.error}"
        )
