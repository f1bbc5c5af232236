"""What came of the extraction of one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from sealbook.errors import QuotaScope
from sealbook.model import PartitionKey, RunId
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage

if TYPE_CHECKING:
    from sealbook.raw import RawMetadata  # which loads obstore; `sealbook --help` needs neither


class Ending(StrEnum):
    """How the extraction of a partition ended."""

    SEALED = "sealed"
    SKIPPED = "skipped"
    """The same run had sealed it before."""
    FAILED = "failed"
    LEFT = "left"
    """It was not asked for: the lease under which it was to be had run out by then."""
    LOST = "lost"
    """It is another's by now: the claim under which it was fetched holds no more (R-CTL-4)."""


BY_HAND = (Ending.SEALED, Ending.SKIPPED, Ending.FAILED)
"""How it can end where nobody has claimed it."""


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
    retry_after: float | None = None
    """The wait in seconds that the source asked for, if it did."""
    quota_scope: QuotaScope | None = None
    """Whose quota is used up, if that is why."""
    requests: int = 0
    """How often the source was asked; the first day of a range has the requests for all of it."""
    days: int = 1
    """Of what failed: how many days failed together, each of which may be the one to blame."""

    def fact(self, attempt: str) -> PartitionSealed | PartitionFailed:
        """Return what came of it as a fact for the log; `attempt` is that of the step."""
        if self.seal is None:
            if self.error_class is None or self.error_message is None:
                raise AssertionError(f"{self.key} has no seal, and no error either")
            return PartitionFailed(
                key=self.key,
                run_id=self.run_id,
                attempt=attempt,
                failed_stage=Stage.EXTRACT,
                error_class=self.error_class,
                error=self.error_message,
                retry_after=self.retry_after,
                quota_scope=self.quota_scope,
                days=self.days if self.days > 1 else None,
            )
        return self.seal.fact

    def asked_for(self, requests: int) -> Extracted:
        """Return it with how often the source was asked."""
        return replace(self, requests=requests)

    def lost(self) -> Extracted:
        """Return it as another's by now."""
        return replace(self, ending=Ending.LOST, seal=None)

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
            "retry_after": self.retry_after,
            "quota_scope": None if self.quota_scope is None else self.quota_scope.value,
        }


@dataclass
class ExtractOutcome:
    """What came of an extraction, counted as results come."""

    run_id: RunId
    endings: Counter[Ending] = field(default_factory=Counter)
    rows: int = 0
    bytes: int = 0
    failures: list[Extracted] = field(default_factory=list)

    def add(self, results: Iterable[Extracted]) -> None:
        """Count results."""
        for result in results:
            self.endings[result.ending] += 1
            self.rows += result.record_count
            self.bytes += result.payload_bytes
            if result.ending is Ending.FAILED:
                self.failures.append(result)

    @property
    def sealed(self) -> int:
        """How many partitions are sealed, by this extraction or before it."""
        return self.endings[Ending.SEALED] + self.endings[Ending.SKIPPED]
