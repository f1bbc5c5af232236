"""The pure model: identities, states, verdicts. Standard library only; no clock, no environment, no I/O."""

from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.state import PartitionState, Status, next_state
from sealbook.model.verdict import Attempt, Check, Outcome, Severity, Verdict

__all__ = [
    "Attempt",
    "Check",
    "Outcome",
    "PartitionKey",
    "PartitionState",
    "RunId",
    "Severity",
    "Status",
    "Verdict",
    "next_state",
]
