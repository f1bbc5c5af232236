"""Answers, each gathered once for each position of the ledger, however many pages ask for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sealbook.clock import utc_now

_KEPT = 128


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page shows: `content` is what `--format json` of the `command` prints.

    `more` is for the page alone: what it needs beside the content to lay it out.
    """

    content: Any
    command: str
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gathered:
    """An answer, when it was gathered, and the stamp that says whether it still is the same."""

    answer: Answer
    stamp: str
    at: datetime


class Answers:
    """The answers gathered last. Those who ask for the same at once wait for one of them to gather it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()

    def get(self, name: str, stamp: str, gather: Callable[[], Answer]) -> Gathered:
        """Return the answer of a name as of a stamp."""
        with self._lock:
            slot = self._slots.setdefault(name, _Slot())
            self._slots.move_to_end(name)
            while len(self._slots) > _KEPT:
                self._slots.popitem(last=False)
        with slot.lock:
            if slot.gathered is None or slot.gathered.stamp != stamp:
                at = utc_now()
                slot.gathered = Gathered(gather(), stamp, at)
            return slot.gathered


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.gathered: Gathered | None = None
