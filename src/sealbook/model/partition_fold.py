"""The ledger built again from its log: what the facts about a partition add up to (R-EVT-11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.partition_events import (
    PartitionFact,
    PartitionHidden,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
)
from sealbook.model.state import PartitionState, Requeue, next_hold, next_state


@dataclass(frozen=True, slots=True)
class FoldedPartition:
    """A partition as its log has it: its state, what its pointer names, what rollbacks hold it against."""

    state: PartitionState
    published: PartitionPublished | None = None
    hold: RunId | None = None

    @classmethod
    def unknown(cls, key: PartitionKey) -> FoldedPartition:
        """Return a partition of which the log says nothing."""
        return cls(PartitionState.pending(key))


def fold_fact(partition: FoldedPartition, fact: PartitionFact, at: datetime) -> FoldedPartition:
    """Return the partition after one more fact; IllegalMove if no partition can get there from here.

    Facts come in the order in which they were committed; `at` is when this one was.
    """
    match fact:
        case PartitionJudged():
            return replace(partition, state=next_state(partition.state, fact.verdict, at, partition.hold))
        case PartitionRequeued():
            return replace(partition, state=next_state(partition.state, Requeue(), at))
        case PartitionRolledBack():
            state = next_state(partition.state, fact.move, at)
            return replace(partition, state=state, hold=next_hold(partition.hold, fact.move))
        case PartitionPublished():
            return replace(partition, published=fact)
        case PartitionHidden():
            return replace(partition, published=None)
    return partition
