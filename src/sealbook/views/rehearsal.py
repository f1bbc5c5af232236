"""A rehearsal: what judging all that is accepted of a query again would demote, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import structs

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


class FoundCheck(msgspec.Struct, frozen=True, rename={"error": "detail"}):
    """A check as it is printed; its detail may quote rows, and so is called `error`, as pages have it."""

    name: str
    passed: bool
    violations: int
    severity: Severity
    error: str | None


class Finding(msgspec.Struct, frozen=True, rename={"error": "error_message"}):
    """A judgement as it is printed, which is kept if it is no acceptance."""

    source: str
    customer_id: str
    query_name: str
    logical_date: str
    run_id: str
    outcome: str
    contract_hash: str | None
    error: str | None
    checks: tuple[FoundCheck, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as one object, with the checks that led to it."""
        failed = [each for each in self.checks if not each.passed and each.severity is Severity.ERROR]
        return {**structs.asdict(self), "checks": [structs.asdict(each) for each in failed]}


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
        return {**asdict(replace(self, findings=())), "findings": [each.to_dict() for each in self.findings]}

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
                findings.append(each)
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


def _decoded(text: bytes) -> Finding:
    try:
        return msgspec.json.decode(text, type=Finding)
    except msgspec.MsgspecError as error:
        raise Permanent(f"the command printed what is no judgement: {error}") from error
