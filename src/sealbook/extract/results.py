"""What came of the extraction of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sealbook.errors import QuotaExceeded, Transient
from sealbook.model import PartitionKey, RunId


class Ending(StrEnum):
    """How the extraction of a partition ended."""

    SEALED = "sealed"
    SKIPPED = "skipped"
    """The same run had sealed it before."""
    FAILED = "failed"


class ErrorClass(StrEnum):
    """What a failure asks for: another try, a pause, or a person (R-CTL-7)."""

    TRANSIENT = "transient"
    QUOTA = "quota"
    PERMANENT = "permanent"

    @classmethod
    def of(cls, error: Exception) -> ErrorClass:
        """Class an error by its type."""
        if isinstance(error, QuotaExceeded):
            return cls.QUOTA
        return cls.TRANSIENT if isinstance(error, Transient) else cls.PERMANENT


@dataclass(frozen=True, slots=True)
class Extracted:
    """The result for one partition; counts are those of its seal, and 0 where there is none."""

    key: PartitionKey
    run_id: RunId
    ending: Ending
    record_count: int = 0
    payload_bytes: int = 0
    seconds: float = 0.0
    error_class: ErrorClass | None = None
    error_message: str | None = None
