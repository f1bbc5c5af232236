"""What came of the extraction of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sealbook.errors import QuotaExceeded, Transient
from sealbook.model import PartitionKey, RunId

if TYPE_CHECKING:
    from sealbook.raw import RawMetadata  # which loads obstore; `sealbook --help` needs neither


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
    """The result for one partition: its seal, or why it has none."""

    key: PartitionKey
    run_id: RunId
    ending: Ending
    seconds: float
    seal: RawMetadata | None = None
    error_class: ErrorClass | None = None
    error_message: str | None = None

    @property
    def record_count(self) -> int:
        """How many rows are sealed."""
        return 0 if self.seal is None else self.seal.record_count

    @property
    def payload_bytes(self) -> int:
        """How many bytes are sealed."""
        return 0 if self.seal is None else self.seal.payload_bytes

    def row(self) -> dict[str, object]:
        """Return the result as one flat row, for a table or JSON."""
        return {
            "source": self.key.source,
            "customer_id": self.key.customer_id,
            "query_name": self.key.query_name,
            "logical_date": self.key.logical_date,
            "run_id": str(self.run_id),
            "ending": self.ending.value,
            "record_count": self.record_count,
            "payload_bytes": self.payload_bytes,
            "seconds": self.seconds,
            "error_class": None if self.error_class is None else self.error_class.value,
            "error_message": self.error_message,
        }
