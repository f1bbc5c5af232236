"""Why partitions were not done: those with one reason together, so that a thousand alike are one line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sealbook.model import PartitionKey

FEW = 3
"""How many keys stand for all that have the same reason."""


class Cause(NamedTuple):
    """What became of one partition, and why; those of one `kind` belong together, whatever their text."""

    key: PartitionKey
    ending: str
    text: str
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """What became of some partitions, and why: in the same words, or in those of the first."""

    ending: str
    text: str
    keys: tuple[PartitionKey, ...]
    is_same: bool = True
    """Whether all have this text, but for their own names in it."""

    def to_dict(self) -> dict[str, object]:
        """Return the reason as one object: how many partitions have it, and the first few of them."""
        return {
            "ending": self.ending,
            "reason": self.text,
            "count": len(self.keys),
            "keys": [str(key) for key in self.keys[:FEW]],
        }


def group_reasons(causes: Iterable[Cause]) -> list[Reason]:
    """Group partitions by ending and cause, the reason of most first."""
    groups: dict[tuple[str, str], list[Cause]] = defaultdict(list)
    for cause in causes:
        groups[cause.ending, cause.kind or _anonymous(cause)].append(cause)
    reasons = [_reason(ending, sorted(those)) for (ending, _), those in groups.items()]
    return sorted(reasons, key=lambda each: (-len(each.keys), each.keys))


def _reason(ending: str, causes: list[Cause]) -> Reason:
    first = causes[0]
    # A text may begin with its own partition, which is named anyway.
    text = first.text.removeprefix(f"{first.key}: ")
    is_same = len({_anonymous(cause) for cause in causes}) == 1
    return Reason(ending, text, tuple(cause.key for cause in causes), is_same)


def _anonymous(cause: Cause) -> str:
    """Return a text without its partition's own name or path, which have its day in them."""
    day = re.escape(cause.key.logical_date.isoformat())
    return re.sub(rf"\S*{day}\S*", "…", cause.text)
