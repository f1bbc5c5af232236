"""The sources of a book with the accounts that they have now: listed ones, and those that were discovered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sealbook.config import Settings, SourceSettings, find_zone

if TYPE_CHECKING:
    from sealbook.ledger.accounts import AccountReader

HELD_SECONDS = 30.0
"""How long accounts are held that were read from the ledger: what is new is taken up after that."""


class LiveSources(Mapping[str, SourceSettings]):
    """Sources by name, as configured; those that discover their accounts have what the ledger knows of them.

    So whoever is handed the sources of a book sees new accounts without being handed them anew: a loop, a
    console. `accounts` is None while there is no ledger.
    """

    def __init__(
        self,
        configured: Mapping[str, SourceSettings],
        accounts: Callable[[], AccountReader | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.configured = configured
        self._accounts = accounts
        self._clock = clock
        self._held: dict[str, tuple[float, SourceSettings]] = {}

    def __getitem__(self, name: str) -> SourceSettings:
        source = self.configured[name]
        if source.discovery is None:
            return source
        read_at, held = self._held.get(name, (0.0, source))
        if held is source or self._clock() - read_at >= HELD_SECONDS:
            held = self._read(source)
            self._held[name] = (self._clock(), held)
        return held

    def __iter__(self) -> Iterator[str]:
        return iter(self.configured)

    def __len__(self) -> int:
        return len(self.configured)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self.configured),)  # another process reads the ledger by itself

    def take_up(self) -> None:
        """Read the accounts anew when they are next asked for."""
        self._held.clear()

    def _read(self, source: SourceSettings) -> SourceSettings:
        reader = self._accounts()
        if source.discovery is None or reader is None or reader.refresh(source.name).refreshed_at is None:
            return source
        accounts = source.discovery.accounts(reader.known(source.name), find_zone)
        return replace(source, customers=tuple(accounts), accounts=accounts, discovered=True)


def with_accounts(settings: Settings, accounts: Callable[[], AccountReader | None]) -> Settings:
    """Return settings whose sources have the accounts of now, if any of them discovers its own."""
    sources = settings.sources
    configured = sources.configured if isinstance(sources, LiveSources) else sources
    if all(each.discovery is None for each in configured.values()):
        return settings
    return replace(settings, sources=LiveSources(configured, accounts))
