"""Why partitions were not done, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sealbook.cli.output import message
from sealbook.cli.table import cell
from sealbook.model.words import counted
from sealbook.views.reasons import FEW

if TYPE_CHECKING:
    from sealbook.model import PartitionKey
    from sealbook.views.reasons import Reason

_SHOWN = 10


def say_reasons(reasons: Sequence[Reason]) -> None:
    """Say each reason once, with how many partitions have it; of many reasons, those that most have."""
    for reason in reasons[:_SHOWN]:
        message(cell(_line(reason)))
    left = reasons[_SHOWN:]
    if left:
        more = sum(len(reason.keys) for reason in left)
        message(f"… and {more:,} more, for other reasons; --format json lists all.")


def few(keys: Sequence[PartitionKey]) -> str:
    """Name a few partitions of many: the first ones, and how many more there are."""
    shown = ", ".join(map(str, keys[:FEW]))
    return f"{shown} … and {len(keys) - FEW:,} more" if len(keys) > FEW else shown


def _line(reason: Reason) -> str:
    first, *others = reason.keys
    if not others:
        return f"{first} {reason.ending}: {reason.text}"
    said = reason.text if reason.is_same else f"the first, {reason.text}"
    return f"{counted(len(reason.keys), 'partition')} {reason.ending}: {said} ({few(reason.keys)})"
