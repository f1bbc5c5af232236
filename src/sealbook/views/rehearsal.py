"""A rehearsal: what judging all that is accepted of a query again would demote, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from sealbook.errors import Permanent
from sealbook.model.verdict import Outcome, Severity

KEPT = 1_000
"""Partitions of a rehearsal that are kept one by one; of all of them there are counts."""


class RehearsalState(StrEnum):
    """How far a rehearsal is."""

    NEVER = "never"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that a run would fail; `error` may quote rows."""

    name: str
    violations: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A partition that would be demoted, or could not be judged; `error` may quote rows."""

    source: str
    customer_id: str
    query_name: str
    logical_date: str
    run_id: str
    outcome: str
    contract_hash: str | None
    error: str | None
    checks: tuple[FailedCheck, ...]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of rehearsing a query: how many would stay accepted, and which would not.

    `findings` are the first of those which would be demoted or could not be judged.
    """

    source: str
    query_name: str
    state: RehearsalState = RehearsalState.NEVER
    actor: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    contract_hashes: tuple[str, ...] = ()
    accepted: int = 0
    demoted: int = 0
    not_judged: int = 0
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    remedy: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as one object."""
        return asdict(self)

    def with_judgements(self, lines: Iterable[bytes]) -> Rehearsal:
        """Add up what `validate --format json` prints, a judgement a line; Permanent if that does not end."""
        counts = dict.fromkeys((Outcome.ACCEPTED.value, Outcome.REJECTED.value), 0)
        hashes, findings, judged = set[str](), list[Finding](), 0
        for line in lines:
            text = line.strip().rstrip(b",")
            if text in (b"]", b"[]"):
                break
            if text == b"[":
                continue
            each = _decoded(text)
            judged += 1
            if each.outcome in counts:
                counts[each.outcome] += 1
            if each.contract_hash is not None:
                hashes.add(each.contract_hash)
            if each.outcome != Outcome.ACCEPTED and len(findings) < KEPT:
                findings.append(each.finding())
        else:
            raise Permanent("the command ended before it was done")
        return replace(
            self,
            contract_hashes=tuple(sorted(hashes)),
            accepted=counts[Outcome.ACCEPTED],
            demoted=counts[Outcome.REJECTED],
            not_judged=judged - sum(counts.values()),
            findings=tuple(findings),
        )


class _Check(msgspec.Struct):
    name: str
    passed: bool
    violations: int
    severity: Severity
    detail: str | None


class _Judgement(msgspec.Struct):
    """What a rehearsal reads of a `judgement_dict`."""

    source: str
    customer_id: str
    query_name: str
    logical_date: str
    run_id: str
    outcome: str
    contract_hash: str | None
    error_message: str | None
    checks: list[_Check]

    def finding(self) -> Finding:
        checks = tuple(
            FailedCheck(each.name, each.violations, each.detail)
            for each in self.checks
            if not each.passed and each.severity is Severity.ERROR
        )
        key = (self.source, self.customer_id, self.query_name, self.logical_date)
        return Finding(*key, self.run_id, self.outcome, self.contract_hash, self.error_message, checks)


def _decoded(text: bytes) -> _Judgement:
    try:
        return msgspec.json.decode(text, type=_Judgement)
    except msgspec.MsgspecError as error:
        raise Permanent(f"the command printed what is no judgement: {error}") from error
