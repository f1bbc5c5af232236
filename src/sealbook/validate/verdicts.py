"""From evidence to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from sealbook.model import Check, Severity, Verdict
from sealbook.model.contract import Contract
from sealbook.rows.problems import CorruptMetadata, CorruptPayload
from sealbook.validate.contracts import seal_checks_version, validator_version
from sealbook.validate.evidence import content_checks, failures, metadata_checks, payload_checks
from sealbook.validate.findings import Content, Evidence
from sealbook.validate.plan import Candidate


class ContractJudge:
    """Judges runs by one contract."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._version = validator_version(contract)
        self._hash = contract.hash

    def judge(
        self,
        candidate: Candidate,
        evidence: Evidence,
        finding: Content | CorruptPayload,
        history: Sequence[int],
    ) -> Verdict:
        """Judge a run by the evidence, which comes to `finding`; `history` are the counts of earlier runs."""
        if isinstance(finding, CorruptPayload):
            return self._reject(candidate, tuple(payload_checks(finding)))
        checks = tuple(content_checks(self._contract, finding, evidence, history))
        if _is_failed(checks):
            return self._reject(candidate, checks)
        return Verdict.accept(
            candidate.key,
            candidate.run_id,
            schema_version=self._contract.schema_version,
            record_count=finding.lines,
            validator_version=self._version,
            checks=checks,
            revalidation_id=candidate.revalidation_id,
            contract_hash=self._hash,
        )

    def _reject(self, candidate: Candidate, checks: tuple[Check, ...]) -> Verdict:
        return _reject(candidate, checks, self._version, self._hash)


def _is_failed(checks: Sequence[Check]) -> bool:
    return any(not check.passed and check.severity is Severity.ERROR for check in checks)


def reject_corrupt_metadata(candidate: Candidate, corrupt: CorruptMetadata) -> Verdict:
    """Reject a run by its seal alone, for which no contract is needed."""
    return _reject(candidate, tuple(metadata_checks(corrupt)), seal_checks_version())


def _reject(
    candidate: Candidate, checks: tuple[Check, ...], version: str, contract_hash: str | None = None
) -> Verdict:
    return Verdict.reject(
        candidate.key,
        candidate.run_id,
        error_message=failures(checks),
        validator_version=version,
        checks=checks,
        revalidation_id=candidate.revalidation_id,
        contract_hash=contract_hash,
    )
