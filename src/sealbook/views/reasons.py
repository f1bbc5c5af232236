"""Why partitions were not done: those with one reason together, so that a thousand alike are one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sealbook.model import PartitionKey


@dataclass(frozen=True, slots=True)
class Reason:
    """What became of some partitions, and why, in the same words."""

    ending: str
    text: str
    keys: tuple[PartitionKey, ...]


def group_reasons(reasons: Iterable[tuple[PartitionKey, str, str]]) -> list[Reason]:
    """Group partitions by ending and text, the reason of most first."""
    keys: dict[tuple[str, str], list[PartitionKey]] = defaultdict(list)
    for key, ending, text in reasons:
        # A text may begin with its own partition, and then says nothing else of its own.
        keys[ending, text.removeprefix(f"{key}: ")].append(key)
    grouped = [Reason(*reason, tuple(sorted(those))) for reason, those in keys.items()]
    return sorted(grouped, key=lambda each: (-len(each.keys), each.keys))
