"""From evidence to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from sealbook.model import Check, Severity, Verdict
from sealbook.model.contract import Contract
from sealbook.validate.contracts import seal_checks_version, validator_version
from sealbook.validate.evidence import (
    content_checks,
    failures,
    is_flawless,
    metadata_checks,
    spoilt_checks,
)
from sealbook.validate.findings import Content, CorruptMetadata, Evidence, SpoiltPayload
from sealbook.validate.plan import Candidate


class ContractJudge:
    """Judges runs by one contract."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._version = validator_version(contract)
        self._flawless: tuple[Check, ...] | None = None

    def judge(
        self,
        candidate: Candidate,
        evidence: Evidence,
        finding: Content | SpoiltPayload,
        history: Sequence[int],
    ) -> Verdict:
        """Judge a run by the evidence, which comes to `finding`; `history` are the counts of earlier runs."""
        if isinstance(finding, SpoiltPayload):
            return _reject(candidate, tuple(spoilt_checks(finding)), self._version)
        checks = self._checks(finding, evidence, history)
        if checks is not self._flawless and _is_failed(checks):
            return _reject(candidate, checks, self._version)
        return Verdict.accept(
            candidate.key,
            candidate.run_id,
            schema_version=self._contract.schema_version,
            record_count=finding.lines,
            validator_version=self._version,
            checks=checks,
            revalidation_id=candidate.revalidation_id,
        )

    def _checks(self, content: Content, evidence: Evidence, history: Sequence[int]) -> tuple[Check, ...]:
        """Make the checks of a run; those of nearly all runs are the same, and are made once."""
        is_usual = is_flawless(self._contract, content, evidence, history)
        if is_usual and self._flawless is not None:
            return self._flawless
        checks = tuple(content_checks(self._contract, content, evidence, history))
        if is_usual:
            self._flawless = checks
        return checks


def _is_failed(checks: Sequence[Check]) -> bool:
    return any(not check.passed and check.severity is Severity.ERROR for check in checks)


def reject_corrupt_metadata(candidate: Candidate, finding: CorruptMetadata) -> Verdict:
    """Reject a run by its seal alone, for which no contract is needed."""
    return _reject(candidate, tuple(metadata_checks(finding)), seal_checks_version())


def _reject(candidate: Candidate, checks: tuple[Check, ...], version: str) -> Verdict:
    return Verdict.reject(
        candidate.key,
        candidate.run_id,
        error_message=failures(checks),
        validator_version=version,
        checks=checks,
        revalidation_id=candidate.revalidation_id,
    )
