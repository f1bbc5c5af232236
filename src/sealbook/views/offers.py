"""What an operator can do about a partition now, each with the command that does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from sealbook.model import Attempt, PartitionState, RunId, Status
from sealbook.model.explanation import Explanation
from sealbook.model.outlook import Prospect
from sealbook.status.problems import restorable_runs


@dataclass(frozen=True, slots=True)
class Offer:
    """An action that makes sense as the partition is, and the command that does the same."""

    action: str
    purpose: str
    command: str
    run_id: RunId | None = None
    """The run that a rollback goes to."""

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


def offers_of(found: Explanation, state: PartitionState, attempts: Iterable[Attempt]) -> tuple[Offer, ...]:
    """Return what can be done about a partition, what is most likely wanted first."""
    return tuple(_offers(found, state, attempts))


def _offers(found: Explanation, state: PartitionState, attempts: Iterable[Attempt]) -> Iterator[Offer]:
    key = found.key
    prospect = None if found.outlook is None else found.outlook.prospect
    stopped = prospect in (Prospect.TERMINAL, Prospect.PARKED)
    if state.status is Status.FAILED:
        yield _offer("retry", "judge it again", f"state retry {key}")
    if stopped:
        yield _offer("clear", "take it up again", f"state terminal clear {key}")
    if state.status is not Status.PENDING:
        yield _offer("reprocess", "fetch another run", f"state reprocess {key}")
    elif found.outlook is None:
        yield _offer("backfill", "have it fetched", f"state backfill {key}")
    for run_id in restorable_runs(state, attempts):
        yield Offer(
            "rollback",
            f"roll back to run {run_id}",
            f"sealbook state rollback {key} --to {run_id} --reason '…'",
            run_id,
        )
    if not stopped and (prospect is not None or state.status is Status.FAILED):
        yield _offer("mark", "give it up", f"state terminal mark {key}")


def _offer(action: str, purpose: str, command: str) -> Offer:
    return Offer(action, purpose, f"sealbook {command} --reason '…'")
