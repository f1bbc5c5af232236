"""A judgement with its evidence: every check, how often it found something, and the lines themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sealbook.model import Attempt, Check, Outcome, PartitionKey, RunId, Severity
from sealbook.raw import RawReader
from sealbook.views.row_content import RowRules, ShownLine, read_lines, without_values


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """One check of a judgement, and the first lines in which it found something."""

    name: str
    passed: bool
    severity: Severity
    violations: int
    detail: str | None
    lines: tuple[ShownLine, ...]

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.passed:
            return "passed"
        return "failed" if self.severity is Severity.ERROR else "warned"

    @property
    def more(self) -> int:
        """How many findings have no line here."""
        return max(self.violations - len(self.lines), 0)


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """One judgement of one run: the checks that failed first, then those that warned, then the others."""

    attempt: int
    run_id: RunId
    outcome: Outcome
    judged_at: datetime
    schema_version: str | None
    record_count: int | None
    error_message: str | None
    validator_version: str
    revalidation_id: str | None
    checks: tuple[ShownCheck, ...]

    @classmethod
    def of(
        cls, raw: RawReader, key: PartitionKey, judged: Attempt, rules: RowRules | None = None
    ) -> ShownVerdict:
        """Read the lines that a judgement names, and put them beside its checks."""
        numbers = {number for check in judged.checks for number in check.lines}
        lines = read_lines(raw, key, judged.run_id, sorted(numbers), rules)
        checks = sorted(judged.checks, key=_rank)
        return cls(
            judged.attempt,
            judged.run_id,
            judged.outcome,
            judged.judged_at,
            judged.schema_version,
            judged.record_count,
            judged.error_message,
            judged.validator_version,
            judged.revalidation_id,
            tuple(
                ShownCheck(
                    check.name,
                    check.passed,
                    check.severity,
                    check.violations,
                    check.detail,
                    tuple(lines[number] for number in check.lines),
                )
                for check in checks
            ),
        )

    def discreet(self) -> ShownVerdict:
        """Return it without the values that its checks quote."""
        checks = tuple(
            replace(each, detail=None if each.detail is None else without_values(each.detail))
            for each in self.checks
        )
        error = None if self.error_message is None else failed_names(checks)
        return replace(self, checks=checks, error_message=error)

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


def _rank(check: Check) -> int:
    if check.passed:
        return 2 if check.violations or check.detail is not None else 3
    return 0 if check.severity is Severity.ERROR else 1


def failed_names(checks: Iterable[ShownCheck | Check]) -> str:
    """Say which checks rejected a run, and nothing of what they found."""
    names = [each.name for each in checks if not each.passed and each.severity is Severity.ERROR]
    return ", ".join(names) or "it does not hold its contract"
