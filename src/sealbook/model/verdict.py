"""What a validator says of one run of a partition, with its evidence (R-VER-2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from sealbook.errors import InvalidInput
from sealbook.model.keys import PartitionKey, RunId, check_key
from sealbook.model.wire import is_storable

E = TypeVar("E", bound=StrEnum)

MAX_LINES = 5

MAX_ID = 255
"""Characters in a revalidation_id: it is part of an index, and databases bound those."""

_MAX_COUNT = 2**63 - 1


class Outcome(StrEnum):
    """How a judgement ended."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Severity(StrEnum):
    """Whether a failed check rejects the run or is only reported."""

    ERROR = "error"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a judgement: whether it held, how often it did not, and where."""

    name: str
    passed: bool
    violations: int = 0
    lines: tuple[int, ...] = ()
    detail: str | None = None
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        check_text("check name", self.name)
        if not isinstance(self.passed, bool):
            raise InvalidInput.of("check passed", self.passed, "True or False")
        check_count("check violations", self.violations)
        if not isinstance(self.lines, tuple) or len(self.lines) > MAX_LINES:
            raise InvalidInput.of("check lines", self.lines, f"a tuple of at most {MAX_LINES} line numbers")
        for line in self.lines:
            check_count("check line", line, least=1)
        if self.detail is not None:
            check_text("check detail", self.detail)
        object.__setattr__(self, "severity", _member(Severity, "check severity", self.severity))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement of one run of one partition. Made by `Verdict.accept` or `Verdict.reject`.

    `revalidation_id` marks a run that is judged again on purpose: an attempt of its own (R-STATE-5).
    `contract_hash` is that of the contract it was held against; None where the seal alone decided.
    """

    key: PartitionKey
    run_id: RunId
    outcome: Outcome
    schema_version: str | None
    record_count: int | None
    error_message: str | None
    validator_version: str
    checks: tuple[Check, ...]
    revalidation_id: str | None
    contract_hash: str | None = None

    @classmethod
    def accept(
        cls,
        key: PartitionKey,
        run_id: str,
        *,
        schema_version: str,
        record_count: int,
        validator_version: str,
        checks: tuple[Check, ...] = (),
        revalidation_id: str | None = None,
        contract_hash: str | None = None,
    ) -> Verdict:
        """Declare a run safe to consume."""
        return cls(
            key=key,
            run_id=RunId(run_id),
            outcome=Outcome.ACCEPTED,
            schema_version=schema_version,
            record_count=record_count,
            error_message=None,
            validator_version=validator_version,
            checks=checks,
            revalidation_id=revalidation_id,
            contract_hash=contract_hash,
        )

    @classmethod
    def reject(
        cls,
        key: PartitionKey,
        run_id: str,
        *,
        error_message: str,
        validator_version: str,
        checks: tuple[Check, ...] = (),
        revalidation_id: str | None = None,
        contract_hash: str | None = None,
    ) -> Verdict:
        """Declare a run unfit, and say why."""
        return cls(
            key=key,
            run_id=RunId(run_id),
            outcome=Outcome.REJECTED,
            schema_version=None,
            record_count=None,
            error_message=error_message,
            validator_version=validator_version,
            checks=checks,
            revalidation_id=revalidation_id,
            contract_hash=contract_hash,
        )

    def __post_init__(self) -> None:
        check_key(self.key)
        if not isinstance(self.run_id, RunId):
            raise InvalidInput.of("run_id", self.run_id, "a RunId")
        object.__setattr__(self, "outcome", _member(Outcome, "outcome", self.outcome))
        if self.accepted:
            check_text("schema_version", self.schema_version)
            check_count("record_count", self.record_count)
            _check_absent("error_message", self.error_message, "an acceptance")
        else:
            check_text("error_message", self.error_message)
            _check_absent("schema_version", self.schema_version, "a rejection")
            _check_absent("record_count", self.record_count, "a rejection")
        check_text("validator_version", self.validator_version)
        if self.revalidation_id is not None:
            check_text("revalidation_id", self.revalidation_id, most=MAX_ID)
        if self.contract_hash is not None:
            check_text("contract_hash", self.contract_hash, most=MAX_ID)
        self._check_checks()

    def _check_checks(self) -> None:
        if not isinstance(self.checks, list | tuple):
            raise InvalidInput.of("checks", self.checks, "a tuple of Check")
        object.__setattr__(self, "checks", tuple(self.checks))
        accepted = self.accepted
        for check in self.checks:
            if not isinstance(check, Check):
                raise InvalidInput.of("check", check, "a Check")
            if accepted and not check.passed and check.severity is Severity.ERROR:
                raise InvalidInput.of("checks", check, "no failed check of severity error in an acceptance")

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that rejected the run."""
        return tuple(
            check.name for check in self.checks if not check.passed and check.severity is Severity.ERROR
        )

    @property
    def accepted(self) -> bool:
        """Whether the run was declared safe."""
        return self.outcome is Outcome.ACCEPTED


@dataclass(frozen=True, slots=True)
class Attempt:
    """One judgement as the ledger keeps it: the verdict's fields, its number and its time."""

    key: PartitionKey
    attempt: int
    run_id: RunId
    outcome: Outcome
    schema_version: str | None
    record_count: int | None
    error_message: str | None
    validator_version: str
    checks: tuple[Check, ...]
    revalidation_id: str | None
    judged_at: datetime


def check_text(field: str, value: object, most: int | None = None) -> None:
    """Refuse what a database or a UTF-8 file could not store: no text, a NUL, a lone surrogate."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput.of(field, value, "text that is not empty")
    if not is_storable(value):
        raise InvalidInput.of(field, value, "text without NUL characters and lone surrogates")
    if most is not None and len(value) > most:
        raise InvalidInput.of(field, value, f"at most {most} characters")


def check_count(field: str, value: object, least: int = 0) -> None:
    """Refuse what is not a whole number that both databases can store."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MAX_COUNT:
        raise InvalidInput.of(field, value, f"a whole number from {least}")


def _check_absent(field: str, value: object, where: str) -> None:
    if value is not None:
        raise InvalidInput.of(field, value, f"none in {where}")


def _member(kind: type[E], field: str, value: object) -> E:
    try:
        return kind(value)  # type: ignore[arg-type]  # the enum tells
    except ValueError as unknown:
        raise InvalidInput.of(field, value, f"one of {', '.join(kind)}") from unknown
