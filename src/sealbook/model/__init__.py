"""The pure model: identities, states, verdicts, events. Standard library only; no clock, no I/O."""

from sealbook.model.events import EventType, RunEvent, idempotency_key
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.run_fold import fold, fold_all
from sealbook.model.run_snapshot import RunSnapshot, RunStatus, StepStatus
from sealbook.model.state import PartitionState, Status, next_state
from sealbook.model.verdict import Attempt, Check, Outcome, Severity, Verdict

__all__ = [
    "Attempt",
    "Check",
    "EventType",
    "Outcome",
    "PartitionKey",
    "PartitionState",
    "RunEvent",
    "RunId",
    "RunSnapshot",
    "RunStatus",
    "Severity",
    "Status",
    "StepStatus",
    "Verdict",
    "fold",
    "fold_all",
    "idempotency_key",
    "next_state",
]
