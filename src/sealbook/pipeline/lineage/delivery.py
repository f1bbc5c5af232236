"""Sending lineage: each event at least once, in the order of the log, and under the same id."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sealbook.config import LineageSettings, Settings
from sealbook.config.lineage import check_installed
from sealbook.errors import Unwritable
from sealbook.ledger import Ledger
from sealbook.ledger.events.port import PAGE
from sealbook.pipeline.lineage.openlineage import LineageEvents
from sealbook.pipeline.lineage.told import Told
from sealbook.status.receivers import HttpReceiver, Receiver

PATIENCE_SECONDS = 10.0
"""How long the server may take for an event: a loop waits for it."""

_KEPT = "What was not sent is kept, and sent by the next `sealbook lineage send`."


@dataclass(frozen=True, slots=True)
class FileReceiver:
    """A file that gets a line for each event."""

    path: Path

    def take(self, batch: bytes) -> None:
        """Append an event, on disk when this returns."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(batch + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unwritable(
                f"lineage: {self.path} cannot be written: {error.strerror}",
                remedy=f"Correct lineage.path. {_KEPT}",
            ) from error


@dataclass(frozen=True)
class LineageSender:
    """Sends what the log tells of runs and steps, from where it was left."""

    ledger: Ledger
    events: LineageEvents
    receiver: Receiver

    @classmethod
    def of(cls, settings: Settings, lineage: LineageSettings, ledger: Ledger) -> LineageSender:
        """Return the sender of a book; MissingExtra without the client of OpenLineage."""
        check_installed()
        events = LineageEvents(
            lineage.namespace,
            settings.raw,
            settings.warehouse,
            {
                (query.source, query.name): query
                for source in settings.sources.values()
                for query in source.queries.values()
            },
            ledger.reader.run_store.fetch_events,
            ledger.reader.judgements,
        )
        return cls(ledger, events, _receiver(lineage))

    def send(self, *, anew: bool = False) -> int:
        """Send all that is outstanding, and return how many events that were; Conflict if another does.

        `anew` sends all that the log has: for a collector that knows nothing yet.
        """
        sent = 0
        with self.ledger.lineage.turn() as turn:
            if anew:
                turn.advance(0)
            while True:
                found, end = turn.fetch(PAGE)
                if end is None:
                    return sent
                for each in found:
                    told = Told.of(each.event)
                    if told is not None:
                        self.receiver.take(self.events.event(told).encode())
                        turn.advance(each.position)
                        sent += 1
                turn.advance(end)


def _receiver(lineage: LineageSettings) -> Receiver:
    if lineage.path is not None:
        return FileReceiver(lineage.path)
    return HttpReceiver(lineage.url or "", lineage.headers, "lineage", _KEPT, PATIENCE_SECONDS)
