"""Asks sources for their accounts: when somebody says so, and by itself when it is time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from sealbook.config import ControlSettings, SourceSettings
from sealbook.errors import Conflict, SealbookError
from sealbook.extract.discovering import discover_accounts
from sealbook.ledger import Ledger
from sealbook.ledger.accounts import AccountTurn, Refresh, Refreshed
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.discovery import Discovery

Discover = Callable[[SourceSettings], list[DiscoveredAccount]]


@dataclass(frozen=True)
class AccountRefresher:
    """Refreshes the accounts of sources that discover them; any number of these may be at it."""

    ledger: Ledger
    sources: Mapping[str, SourceSettings]
    control: ControlSettings
    take_up: Callable[[], None]
    """Has whoever works on the book read the accounts anew."""
    discover: Discover = discover_accounts

    def refresh(self, name: str) -> Refreshed:
        """Ask a source now; what it raises is noted and raised, and leaves all accounts as they were."""
        with self._turn(name) as turn:
            return self._ask(turn, self.sources[name])

    def refresh_due(self, names: Collection[str], tell: Callable[..., None]) -> None:
        """Ask the sources whose time it is, and that nobody else is asking; what fails is told."""
        for name in names:
            source, reader = self.sources[name], self.ledger.reader
            if source.discovery is None or not self.is_due(
                source.discovery, reader.accounts.refresh(name), reader.now()
            ):
                continue
            try:
                with self._turn(name) as turn:
                    # Another may just have done it; and where the budget has no room, a later round may.
                    if turn.has_room and self.is_due(source.discovery, turn.refresh(), turn.at):
                        done = self._ask(turn, source)
                        tell("accounts", source=name, **counts_of(done))
            except Conflict:
                continue  # another is at it
            except SealbookError as error:
                tell("accounts_failed", source=name, error=str(error))

    def is_due(self, discovery: Discovery, refresh: Refresh, now: datetime) -> bool:
        """Tell whether a source should be asked: after its interval, or after a wait since it failed."""
        if refresh.failures and refresh.failed_at is not None:
            policy = self.control.retries.by_source.get(refresh.source, self.control.retries.default)
            return now >= refresh.failed_at + min(policy.step(refresh.failures), discovery.every)
        if refresh.refreshed_at is None or refresh.root != discovery.root:
            return True
        return now >= refresh.refreshed_at + discovery.every

    def _turn(self, name: str) -> AbstractContextManager[AccountTurn]:
        return self.ledger.accounts.turn(name, self.control.requests_per_day.get(name))

    def _ask(self, turn: AccountTurn, source: SourceSettings) -> Refreshed:
        turn.check_room()
        turn.asked = True
        try:
            found = self.discover(source)
        except SealbookError as error:
            turn.fail(str(error))
            raise
        done = turn.record("" if source.discovery is None else source.discovery.root, found)
        self.take_up()
        return done


def counts_of(done: Refreshed) -> dict[str, int]:
    """Return what came of a refresh, in numbers."""
    return {
        "accounts": done.accounts,
        "found": len(done.found),
        "changed": len(done.changed),
        "vanished": len(done.vanished),
    }
