"""What has moved, told to every page that is open: the ledger is looked at once for all of them.

A message says how far the ledger is and which partitions have changed, and nothing else: pages that want to
know more ask for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from starlette.concurrency import run_in_threadpool

from sealbook.console.positions import Positions
from sealbook.errors import SealbookError
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.ledger.position import Position
from sealbook.views.encoding import encode

POLL_SECONDS = 1.0
_MOST_PARTITIONS = 500
"""More than so many changed partitions are not named: then all may have."""

_ALIVE_SECONDS = 15.0
"""After so long without news a stream gives a sign of life: what lies between would cut it off."""

_LONGEST_SECONDS = 300.0
"""A stream ends after so long, and the page asks again: who was let in then may not be any more."""


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the ledger is, and the partitions that have changed; all may have if they are not named."""

    position: Position
    partitions: tuple[str, ...] = ()
    all: bool = False

    def as_event(self) -> bytes:
        """Return it as an event of a stream, whose id is the position to resume from."""
        data = {"position": str(self.position), "partitions": self.partitions, "all": self.all}
        return b"id: %s\nevent: moved\ndata: %s\n\n" % (str(self.position).encode(), encode(data))


class Live:
    """The one who looks at the ledger, while anybody listens; every listener hears the same."""

    def __init__(
        self, positions: Positions, run_store: RunStoreReader, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._positions = positions
        self._run_store = run_store
        self._poll_seconds = poll_seconds
        self._listeners: set[asyncio.Queue[Moved | None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._last_named: tuple[str, ...] = ()

    async def stream(self, resumes_from: str | None) -> AsyncGenerator[bytes, None]:
        """Yield events until the listener leaves, a while has passed, or the console ends.

        Who resumes from a position hears at once what has changed since.
        """
        news: asyncio.Queue[Moved | None] = asyncio.Queue()
        ends_at = monotonic() + _LONGEST_SECONDS
        known = await run_in_threadpool(self._positions.now)
        self._listeners.add(news)
        try:
            if self._poller is None:
                self._poller = asyncio.create_task(self._poll(known))
            yield b"retry: 2000\n\n"
            since = None if resumes_from is None else Position.parse(resumes_from)
            if since is None:
                yield b"id: %s\nevent: here\ndata: {}\n\n" % str(known).encode()
            elif since != known:
                yield (await run_in_threadpool(self._moved, since, known)).as_event()
            while monotonic() < ends_at:
                try:
                    moved = await asyncio.wait_for(news.get(), _ALIVE_SECONDS)
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if moved is None:
                    return
                yield moved.as_event()
        finally:
            self._listeners.discard(news)
            if not self._listeners and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    def end(self) -> None:
        """End every stream: the console is stopped."""
        for each in self._listeners:
            each.put_nowait(None)

    async def _poll(self, known: Position) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            with suppress(SealbookError):  # a ledger that does not answer has not moved; pages say so
                now = await run_in_threadpool(self._positions.now)
                if now != known:
                    moved = await run_in_threadpool(self._moved, known, now)
                    known = now
                    for each in self._listeners:
                        each.put_nowait(moved)

    def _moved(self, since: Position, now: Position) -> Moved:
        if now.feed > since.feed:
            named = self._run_store.partitions_after(since.feed, _MOST_PARTITIONS + 1)
            if len(named) > _MOST_PARTITIONS:
                self._last_named = ()
                return Moved(now, all=True)
            self._last_named = tuple(sorted(named))
            return Moved(now, self._last_named, all=now.override > since.override)
        if now.projected != since.projected and now.override == since.override and self._last_named:
            return Moved(now, self._last_named)  # what was appended before is only now to be seen
        return Moved(now, all=True)
