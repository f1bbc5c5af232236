"""Why partitions were not done, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sealbook.cli.output import message
from sealbook.cli.table import cell
from sealbook.cli.words import counted

if TYPE_CHECKING:
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


def _line(reason: Reason) -> str:
    first, *others = reason.keys
    if not others:
        return f"{first} {reason.ending}: {reason.text}"
    some = f"{first} and {len(others):,} more"
    return f"{counted(len(reason.keys), 'partition')} {reason.ending}: {reason.text} ({some})"
