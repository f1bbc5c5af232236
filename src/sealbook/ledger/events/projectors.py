"""Several projections that are kept up with the log together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.port import EventFeed
from sealbook.ledger.events.projector import Projector
from sealbook.ledger.events.watch import LISTEN_SECONDS


class Projectors:
    """What keeps every projection of a ledger up with its log."""

    def __init__(self, feed: EventFeed, projectors: Sequence[Projector]) -> None:
        self._feed = feed
        self._projectors = projectors

    def lags(self) -> Mapping[str, Lag]:
        """Measure how far each projection is behind the log, by its name."""
        return {each.name: each.lag() for each in self._projectors}

    def lag(self) -> Lag:
        """Measure how far the one is behind that is the furthest."""
        return _worst(self.lags().values())

    def catch_up(self) -> Lag:
        """Take in all that the log has now, or wait until others have; return what is left at most."""
        return _worst([each.catch_up() for each in self._projectors])

    def follow(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Take in events as they come, until asked to stop."""
        try:
            with self._feed.watch() as watch:
                while not stop():
                    found = [each.look() for each in self._projectors]
                    watch.rest(found=any(found), at_most=LISTEN_SECONDS)
        finally:  # by Ctrl-C too: whoever comes next need not wait for the leases to run out
            for each in self._projectors:
                each.let_go()

    def rebuild(self) -> None:
        """Project everything anew, one projection after the other."""
        for each in self._projectors:
            each.rebuild()


def _worst(lags: Iterable[Lag]) -> Lag:
    return max(lags, key=lambda lag: (lag.seconds, lag.events))
