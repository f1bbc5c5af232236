"""What a book sends out: alerts, lineage, mirrors, and how far consumers have followed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from sealbook.book.reader import Readable
from sealbook.errors import ConfigError, Conflict, SealbookError
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from sealbook.ledger import Ledger
    from sealbook.mirror.opening import Mirror
    from sealbook.model.alerts import Alert
    from sealbook.model.published_changes import Consumer
    from sealbook.pipeline.lineage import LineageSender

_EVERYTHING = Selection()


class Outgoing(Readable):
    """The side of a book that tells others."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The state of every partition."""

    def advance(self, consumer: str, query: str | Selection, token: str) -> Consumer:
        """Keep in the ledger that a consumer has followed a query up to a token of its changes."""
        chosen = Selection(queries=query) if isinstance(query, str) else query
        self.check(chosen)
        return self.ledger.pointers.advance(consumer, *self._followed(chosen), token)

    def mirror(self, name: str) -> Mirror:
        """Return a configured mirror: `run` brings it up to what is published now."""
        from sealbook.mirror.opening import open_mirror

        found = self.settings.mirrors.get(name)
        if found is None:
            known = ", ".join(self.settings.mirrors) or "none"
            raise ConfigError(
                f"no mirror {name} is configured",
                remedy=f"Configured are {known}; to have another, configure it under `mirrors`.",
            )
        return open_mirror(self.settings, found, self.ledger.reader, self.ledger.pointers)

    def alerts(self, selection: Selection = _EVERYTHING) -> list[Alert]:
        """Return what somebody should look at now; nothing is sent."""
        from sealbook.status.alerting import find_alerts

        lags = self.ledger.projector().lags()  # before they are caught up with
        self.catch_up()
        return find_alerts(self._reads, self.expectations(), lags, selection, self.settings.sources)

    def send_alerts(self) -> tuple[list[Alert], int]:
        """Tell who is configured of what is new or over, each once; return all alerts, and what was sent."""
        from sealbook.status.alerting import send_notices
        from sealbook.status.receivers import receiver_of

        if self.settings.alerts is None:
            raise ConfigError(
                "nobody is configured to be told of alerts",
                remedy="Give `alerts` a command or a url in sealbook.yaml.",
            )
        receiver = receiver_of(self.settings.alerts, self.settings.root)
        with self.ledger.alerts.turn() as turn:
            found = self.alerts()
            turn.record(found)
            sent = send_notices(turn, receiver)
            turn.prune()
            return found, sent

    def send_lineage(self, *, anew: bool = False) -> int:
        """Send OpenLineage events that are outstanding, or `anew` all of the log; return how many."""
        sender = self._lineage_sender()
        if sender is None:
            raise ConfigError(
                "it is not configured where lineage goes",
                remedy="Give `lineage` a path or a url in sealbook.yaml.",
            )
        return sender.send(anew=anew)

    def lineage_telling(self, on_error: Callable[[str], object]) -> Callable[[], None]:
        """Return what sends lineage, if it is configured: what goes wrong is said, and stops nothing."""
        sender = self._lineage_sender()

        def send() -> None:
            try:
                if sender is not None:
                    sender.send()
            except Conflict:  # another process is sending just now
                return
            except SealbookError as error:
                on_error(str(error))

        return send

    def _lineage_sender(self) -> LineageSender | None:
        if self.settings.lineage is None:
            return None
        from sealbook.pipeline.lineage import LineageSender

        return LineageSender.of(self.settings, self.settings.lineage, self.ledger)
