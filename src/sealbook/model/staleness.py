"""Why what consumers read of a partition may be out of date: computed when it is asked for (R-PST-3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sealbook.model.freshness import Deadline
from sealbook.model.keys import PartitionKey


class StaleCode(StrEnum):
    """Why a partition is not fresh, in the order in which the main reason is chosen.

    The last two say that it is not known to be fresh, which is never the same as being fresh (R-PST-4).
    """

    FRESHNESS_POLICY = "FRESHNESS_POLICY"
    UPSTREAM_CHANGED = "UPSTREAM_CHANGED"
    CODE_CHANGED = "CODE_CHANGED"
    UPSTREAM_UNKNOWN = "UPSTREAM_UNKNOWN"
    CODE_UNKNOWN = "CODE_UNKNOWN"


@dataclass(frozen=True, slots=True)
class StaleReason:
    """A reason, since when it holds, and the upstream partitions that it comes from."""

    code: StaleCode
    since: datetime
    upstreams: tuple[PartitionKey, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeInForce:
    """The contract by which partitions of a query are judged now, and since when."""

    contract_hash: str
    since: datetime
    also: frozenset[str] = frozenset()
    """Contracts in force of other versions that hold for some days: what one of them accepted is as good."""


def stale_reasons(
    materialized_at: datetime,
    code_version: str | None,
    *,
    deadline: Deadline | None = None,
    upstreams: Iterable[tuple[PartitionKey, datetime | None]] = (),
    code: CodeInForce | None = None,
) -> list[StaleReason]:
    """Return every reason that holds, the main one first; equal times are fresh.

    `deadline` is the one of the policy that has passed, `upstreams` are the mapped partitions with the times
    of their materializations, `code` is the contract in force. What is not given does not apply.
    """
    mapped = list(upstreams)
    found = []
    if deadline is not None and materialized_at < deadline.point:
        found.append(StaleReason(StaleCode.FRESHNESS_POLICY, deadline.at))
    later = [(at, key) for key, at in mapped if at is not None and at > materialized_at]
    if later:
        since = min(at for at, _ in later)
        found.append(StaleReason(StaleCode.UPSTREAM_CHANGED, since, tuple(sorted(key for _, key in later))))
    if code is not None and code_version is not None and code_version not in {code.contract_hash, *code.also}:
        found.append(StaleReason(StaleCode.CODE_CHANGED, code.since))
    never = tuple(sorted(key for key, at in mapped if at is None))
    if never:
        found.append(StaleReason(StaleCode.UPSTREAM_UNKNOWN, materialized_at, never))
    if code is not None and code_version is None:
        found.append(StaleReason(StaleCode.CODE_UNKNOWN, materialized_at))
    return found
