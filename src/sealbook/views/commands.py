"""The command that does the same: as somebody would type it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sealbook.model.selection import Selection

REASON = "…"
"""What stands for a reason that nobody has given yet."""


def command(*words: str, selection: Selection | None = None, reason: str | None = None) -> str:
    """Return a command of Sealbook: its words, the partitions that it is for, and why."""
    chosen = () if selection is None else tuple(selection_words(selection))
    why = () if reason is None else ("--reason", reason)
    return shlex.join(("sealbook", *words, *chosen, *why))


def selection_words(selection: Selection) -> Iterator[str]:
    """Yield the arguments and options that choose what is chosen."""
    yield from map(str, selection.keys)
    named = {
        "--source": selection.source,
        "--customer-id": selection.customers,
        "--query-name": selection.queries,
        "--run-id": selection.runs,
        "--status": selection.statuses,
    }
    for option, values in named.items():
        for value in values or ():
            yield from (option, str(value))
    for option, day in (("--since", selection.since), ("--until", selection.until)):
        if day is not None:
            yield from (option, day.isoformat())
