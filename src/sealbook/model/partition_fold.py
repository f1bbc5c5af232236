"""The ledger built again from its log: what the facts about a partition add up to (R-EVT-11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sealbook.model.keys import PartitionKey
from sealbook.model.partition_events import (
    PartitionFact,
    PartitionHidden,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
)
from sealbook.model.state import PartitionState, Requeue, Rollback, next_state


@dataclass(frozen=True, slots=True)
class FoldedPartition:
    """A partition as its log has it: its state, and what its pointer names if it has one."""

    state: PartitionState
    published: PartitionPublished | None = None

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
            return replace(partition, state=next_state(partition.state, fact.verdict, at))
        case PartitionRequeued():
            return replace(partition, state=next_state(partition.state, Requeue(), at))
        case PartitionRolledBack():
            move = Rollback(fact.run_id, fact.schema_version, fact.record_count)
            return replace(partition, state=next_state(partition.state, move, at))
        case PartitionPublished():
            return replace(partition, published=fact)
        case PartitionHidden():
            return replace(partition, published=None)
    return partition
