"""What a loop says of its work: lines for people, or JSON lines for programs; and metrics of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sealbook.control.tally import Tally
from sealbook.logs import is_json, tell
from sealbook.model.words import counted

_QUIET = frozenset({"claimed", "waiting"})
"""What people do not want to read each time."""


@dataclass
class Journal:
    """Hears what a loop does: counts it, and says it; to people by `write`. Other threads may read it."""

    write: Callable[[str], object]
    endings: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    seconds: float = 0.0
    failures: int = 0
    held: int = 0
    rounds: int = 0
    signed_at: float = field(default_factory=time.monotonic)
    """When it last gave a sign of life."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, event: str, **fields: object) -> None:
        """Take in that something has happened."""
        tally = fields.pop("tally", None)
        with self._lock:
            self._count(event, fields, tally if isinstance(tally, Tally) else None)
        if event == "progress":  # a sign of life, and no news
            return
        if isinstance(tally, Tally):
            fields |= _by_ending(tally)
        if is_json():
            tell(event, "error" if "error" in fields else "info", **fields)
        elif event not in _QUIET:
            self.write(_line(event, fields))

    def _count(self, event: str, fields: dict[str, object], tally: Tally | None) -> None:
        self.signed_at = time.monotonic()
        match event:
            case "claimed":
                self.held = int(str(fields["partitions"]))
            case "worked":
                self.held = 0
                self.batches += 1
                self.seconds += float(str(fields["seconds"]))
            case "round":
                self.rounds += 1
            case "failed":
                self.held = 0
                self.failures += 1
            case "accounts_failed":
                self.failures += 1
        if tally is not None:
            self.endings.update(tally.endings)
            for key, number in tally.requests.items():
                self.requests[key.source] += number

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield what was counted, as metrics: name, labels, value. No label names a customer or a day."""
        with self._lock:
            endings, requests = dict(self.endings), dict(self.requests)
            yield "sealbook_control_batches_total", {}, self.batches
            yield "sealbook_control_batch_seconds_total", {}, self.seconds
            yield "sealbook_control_failures_total", {}, self.failures
            yield "sealbook_control_held_partitions", {}, self.held
        for (source, ending), number in sorted(endings.items()):
            yield "sealbook_control_partitions_total", {"source": source, "ending": ending}, number
        for source, number in sorted(requests.items()):
            yield "sealbook_control_requests_total", {"source": source}, number


def _by_ending(tally: Tally) -> dict[str, object]:
    found: Counter[str] = Counter()
    for (_, ending), number in tally.endings.items():
        found[ending] += number
    return {**found, "requests": tally.requests.total()}


def _line(event: str, fields: dict[str, object]) -> str:
    match event:
        case "worked":
            endings = ", ".join(
                counted(number, "request") if name == "requests" else f"{number:,} {name.replace('_', ' ')}"
                for name, number in fields.items()
                if name not in ("partitions", "seconds") and isinstance(number, int) and number
            )
            partitions = counted(int(str(fields["partitions"])), "partition")
            return f"{partitions} in {fields['seconds']} s: {endings or 'nothing'}"
        case "round":
            opened = fields["opened"]
            lanes = opened.items() if isinstance(opened, dict) else ()
            said = ", ".join(f"{number:,} {lane}" for lane, number in lanes)
            again = f", {fields['reopened']} taken up again" if fields["reopened"] else ""
            return f"Opened: {said or 'nothing new'}{again}"
        case "failed":
            return f"Broke off: {fields['error']}"
        case "accounts":
            numbers = ("found", "changed", "vanished")
            news = ", ".join(f"{fields[name]} {name}" for name in numbers if fields[name])
            accounts = counted(int(str(fields["accounts"])), "account")
            return f"Accounts of {fields['source']}: {accounts}, {news or 'none changed'}"
        case "accounts_failed":
            return f"Accounts of {fields['source']} are as they were: {fields['error']}"
        case "lineage":
            return f"Lineage was not sent: {fields['error']}"
    return " ".join([event, *(f"{name}={value}" for name, value in fields.items())])
