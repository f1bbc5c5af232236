"""What a worker holds for now, and the heartbeat that keeps it while the stages work (R-CTL-4)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from sealbook.errors import SealbookError
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey
from sealbook.model.claims import Claims

_log = logging.getLogger(__name__)

_BEATS_A_LEASE = 3
"""So often a lease is renewed before it would run out: one lost heartbeat does no harm."""


class Held(Mapping[PartitionKey, int]):
    """The fences of what is still held; hand it to the stages, which look into it before each write."""

    def __init__(self, fences: Mapping[PartitionKey, int]) -> None:
        self._fences = dict(fences)

    def __getitem__(self, key: PartitionKey) -> int:
        return self._fences[key]

    def __iter__(self) -> Iterator[PartitionKey]:
        return iter(self._fences)

    def __len__(self) -> int:
        return len(self._fences)

    def keep(self, keys: Collection[PartitionKey]) -> None:
        """Drop all but these: done, let go, or another's."""
        self._fences = {key: fence for key, fence in self._fences.items() if key in keys}


@contextmanager
def heartbeat(ledger: Ledger, claims: Claims, lease: timedelta, rated: Collection[str]) -> Iterator[Held]:
    """Keep what was claimed, and the shares of the rates of some sources, while the block lasts.

    What is not the holder's any more is dropped from what is yielded. If the ledger cannot be reached, all of
    it is, as soon as the lease has run out by this machine's watch.
    """
    held = Held(claims.fences)
    ended = threading.Event()
    seconds = lease.total_seconds()

    def beat() -> None:
        renewed = time.monotonic()
        while not ended.wait(seconds / _BEATS_A_LEASE):
            began = time.monotonic()
            try:
                held.keep(ledger.scheduler.heartbeat(claims.holder, dict(held), lease))
                for source in rated:
                    ledger.rates.keep(source, claims.holder, lease)
                renewed = began
            except SealbookError as error:  # whatever it was, what counts is whether the lease lasts
                _log.warning("a lease was not renewed: %s", error)
                if time.monotonic() - renewed > seconds:
                    held.keep(())

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()
