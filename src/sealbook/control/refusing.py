"""Why an action cannot be done to a partition that was named, and what to do instead (R-CTL-8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, PartitionState, Status
from sealbook.model.plans import PlanKind
from sealbook.raw import RawReader


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that is left as it is: why, and the way out."""

    key: PartitionKey
    why: str
    remedy: str

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of its key first."""
        return {**asdict(self.key), "why": self.why, "remedy": self.remedy}


def why_not(ledger: LedgerReader, raw: Callable[[], RawReader], kind: PlanKind, key: PartitionKey) -> Refusal:
    """Say why a partition is not a part of a plan of this kind."""
    state, work = ledger.state(key), ledger.schedule.work(key)
    is_stopped = work is not None and work.work.stop is not None
    match kind:
        case PlanKind.RETRY:
            return _no_retry(state, is_sealed=bool(raw().runs(key)), is_stopped=is_stopped)
        case PlanKind.REPROCESS:
            return Refusal(key, "it was never judged", _first_fetch(key, is_stopped=is_stopped))
        case PlanKind.MARK if is_stopped:
            return Refusal(key, "it is given up already", "`sealbook state terminal list` shows it.")
        case PlanKind.MARK:
            return Refusal(
                key,
                "nothing is open of it, and it has not failed",
                f"`sealbook explain {key}` says how it is.",
            )
    return Refusal(key, "it has not stopped", "`sealbook state terminal list` shows what has.")


def _no_retry(state: PartitionState, *, is_sealed: bool, is_stopped: bool) -> Refusal:
    key = state.key
    again = f"To fetch it again: sealbook state reprocess {key} --reason '…'"
    if state.status is Status.SUCCESS:
        return Refusal(key, "it is good, and has not failed", again)
    if state.status is Status.FAILED:
        return Refusal(key, "no run of it is sealed any more", again)
    if is_sealed:
        return Refusal(key, "it waits to be judged already", "To judge it now: sealbook validate")
    return Refusal(key, "no run of it was ever sealed", _first_fetch(key, is_stopped=is_stopped))


def _first_fetch(key: PartitionKey, *, is_stopped: bool) -> str:
    if is_stopped:
        return f"It has stopped; to take it up again: sealbook state terminal clear {key} --reason '…'"
    return f"To fetch it: sealbook state backfill {key} --reason '…'"
