"""What comes of each run that was to be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sealbook.model import PartitionKey, PartitionState, RunId, Severity, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the partition's state after it; no state if nothing was written."""

    verdict: Verdict
    state: PartitionState | None
    rows: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A run that nothing could be said of: no attempt is counted, its partition stays as it was (R-VER-4)."""

    key: PartitionKey
    run_id: RunId
    reason: str
    is_misconfigured: bool = False
    """There is no contract to judge it by; trying again will not help."""
    is_gone: bool = False
    """It was to be judged, and is not sealed any more."""
    is_irreplaceable: bool = False
    """Its verdict would take the only copy of a day from consumers, and has to be confirmed."""


Result = Judged | NotJudged


@dataclass
class Rejections:
    """Runs that the same checks rejected: the first of them, and the partitions of all."""

    first: Verdict
    keys: list[PartitionKey] = field(default_factory=list)


@dataclass
class ValidateOutcome:
    """What came of a validation, counted as results come."""

    accepted: int = 0
    rejected: int = 0
    superseded: int = 0
    rows: int = 0
    failed_checks: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    """In how many partitions each check failed, by its name and severity."""
    rejections: dict[tuple[str, ...], Rejections] = field(default_factory=dict)
    """Those that the same checks rejected together, by the names of these."""
    not_judged: list[NotJudged] = field(default_factory=list)

    def add(self, results: Iterable[Result]) -> None:
        """Count results."""
        for result in results:
            if isinstance(result, NotJudged):
                self.not_judged.append(result)
            else:
                self._add(result)

    def _add(self, judged: Judged) -> None:
        self.rows += judged.rows
        self.failed_checks.update(
            (check.name, check.severity) for check in judged.verdict.checks if not check.passed
        )
        if judged.verdict.accepted:
            self.accepted += 1
        else:
            self.rejected += 1
            rejections = self.rejections.setdefault(judged.verdict.failed, Rejections(judged.verdict))
            rejections.keys.append(judged.verdict.key)
