"""The loop: rounds of claims and work, once or until it is stopped. Any number of them share a book."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sealbook.config import Settings
from sealbook.control.accounts import AccountRefresher
from sealbook.control.pricing import days_per_request
from sealbook.control.round import Round, RoundOpener
from sealbook.control.tally import Tally
from sealbook.control.working import Worker
from sealbook.errors import SealbookError, Transient, UnknownOutcome, Unwritable
from sealbook.ledger import Ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model.claims import Claims, Waiting
from sealbook.model.selection import Selection
from sealbook.model.work import Lane

BATCH = 500
"""Partitions that are claimed at once, at most."""
_FIRST_BATCH = 50
_ROUND_EVERY = timedelta(minutes=1)
_EXPECT_EVERY = timedelta(hours=1)
_NO_TURN_SECONDS = 0.2
_NO_PART_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_LONGEST_BACKOFF_SECONDS = 300.0
_MOST_FAILURES = 10
"""So often in a row it may break off by what may pass; then whoever supervises the loop starts it anew."""

Tell = Callable[..., None]
"""Hears what happens: a word, and what belongs to it by name."""


@dataclass(frozen=True)
class Ticked:
    """What a tick came to: what its round opened, what was done, and why it ended."""

    round: Round
    tally: Tally
    batches: int
    ended: str
    """done (nothing is ready), gated (what is ready has to wait), bound (it has done what was asked)."""
    next_at: datetime | None = None


def holder_name() -> str:
    """Return by which name this process claims: nobody else has it, also after a restart."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns() // 1_000_000:x}"


@dataclass
class Loop:
    """A loop on a book: opens rounds, claims what is ready and has it done."""

    ledger: Ledger
    settings: Settings
    rounds: RoundOpener
    worker: Worker
    accounts: AccountRefresher | None = None
    holder: str = field(default_factory=holder_name)
    batch: int = BATCH
    selection: Selection = field(default_factory=Selection)
    """Of which sources; work is opened and done of these alone."""
    lanes: Collection[Lane] = tuple(Lane)
    tell: Tell = lambda _event, **_fields: None
    send_lineage: Callable[[], None] = lambda: None
    """Raises nothing: lineage never stops a loop."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        control = self.settings.control
        self._terms = Terms(
            self.selection.source or list(self.settings.sources),
            self.lanes,
            shares=control.shares,
            weights=control.weights,
            budgets=control.requests_per_day,
            ranges=days_per_request(self.settings),
        )
        self._limit = min(_FIRST_BATCH, self.batch)
        self._expected_at: float | None = None
        self._parts: dict[str, float] = {}

    def tick(self, *, partitions: int | None = None, seconds: float | None = None) -> Ticked:
        """Open a round, and work until nothing is ready, or so many partitions or seconds are used up."""
        deadline = None if seconds is None else self.clock() + seconds
        opened = self.open_round()
        total, batches, left = Tally(), 0, partitions
        try:
            while True:
                if (left is not None and left <= 0) or (deadline is not None and self.clock() >= deadline):
                    return Ticked(opened, total, batches, "bound")
                claims = self.claim(left)
                if claims.waiting is Waiting.CONTENDED:
                    self.sleep(_NO_TURN_SECONDS)
                    continue
                if not claims:
                    ended = "gated" if claims.waiting is Waiting.GATED else "done"
                    return Ticked(opened, total, batches, ended, claims.next_at)
                total.merge(self.work(claims))
                batches += 1
                left = None if left is None else left - len(claims)
        finally:
            self._leave_rates()
            self.send_lineage()

    def serve(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Work until somebody stops the process; what breaks off by what may pass is tried again."""
        next_round, failures = self.clock(), 0
        try:
            while not is_stopped():
                try:
                    if self.clock() >= next_round:
                        self.open_round()
                        self.send_lineage()
                        next_round = self.clock() + _ROUND_EVERY.total_seconds()
                    claims = self.claim()
                    if claims:
                        self.work(claims)
                    else:
                        self._wait(claims, next_round)
                    failures = 0
                except (Transient, UnknownOutcome, Unwritable) as error:
                    failures += 1
                    self.tell("failed", error=str(error), failures=failures)
                    if failures >= _MOST_FAILURES:
                        raise
                    self.sleep(min(2.0**failures, _LONGEST_BACKOFF_SECONDS))
        finally:
            self._leave_rates()

    def open_round(self) -> Round:
        """Open work for what is due, of all accounts; and say, once an hour, what lanes will ask for."""
        if self.accounts is not None:
            self.accounts.refresh_due(self._terms.sources, self.tell)
        opened = self.rounds.open(self.selection)
        if self._expected_at is None or self.clock() >= self._expected_at:
            self._terms = replace(self._terms, expected=self.rounds.expected())
            self._expected_at = self.clock() + _EXPECT_EVERY.total_seconds()
        if opened.opened or opened.reopened:
            lanes = {lane.value: count for lane, count in opened.opened.items()}
            self.tell("round", opened=lanes, reopened=opened.reopened)
        return opened

    def claim(self, most: int | None = None) -> Claims:
        """Claim what is ready, of sources that this loop has a part of the limits of."""
        limit = self._limit if most is None else min(self._limit, most)
        self._parts = self._renew_rates()
        sources = [source for source in self._terms.sources if self._parts.get(source, 1.0) > 0]
        return self.ledger.scheduler.claim(
            self.holder, replace(self._terms, sources=sources), limit=limit, lease=self.settings.control.lease
        )

    def work(self, claims: Claims) -> Tally:
        """Do what was claimed. The next batch is larger; or smaller, if there was no time to ask for all."""
        began = self.clock()
        self.tell("claimed", partitions=len(claims))
        tally = self.worker.work(claims, self._parts, lambda: self.tell("progress"))
        seconds = self.clock() - began
        self.tell("worked", partitions=len(claims), seconds=round(seconds, 3), tally=tally)
        grown = max(1, self._limit // 2) if tally.left else self._limit * 2
        self._limit = min(self.batch, grown)
        return tally

    def _wait(self, claims: Claims, next_round: float) -> None:
        """Wait for the next round, or for what is known to be ready before."""
        seconds = min(next_round - self.clock(), _LONGEST_WAIT_SECONDS)
        if claims.waiting is Waiting.CONTENDED:
            seconds = _NO_TURN_SECONDS
        elif claims.next_at is not None:
            seconds = min(seconds, (claims.next_at - self.ledger.reader.now()).total_seconds())
        if any(part == 0 for part in self._parts.values()):
            seconds = min(seconds, _NO_PART_SECONDS)  # the others come down to theirs when their batch ends
        else:
            self._leave_rates()
        seconds = max(seconds, _NO_TURN_SECONDS)
        self.tell("waiting", why=claims.waiting.value if claims.waiting else "", seconds=round(seconds, 1))
        self.sleep(seconds)

    def _renew_rates(self) -> dict[str, float]:
        """Return this loop's part of the limits of each source that has some: all loops together have one."""
        lease = self.settings.control.lease
        return {
            source.name: self.ledger.rates.renew(source.name, self.holder, 1.0, lease)
            for source in self.settings.sources.values()
            if source.name in self._terms.sources
            if source.limits.requests_per_second is not None
            or source.limits.requests_per_second_per_customer is not None
        }

    def _leave_rates(self) -> None:
        """Leave the parts to the others; whoever cannot say so loses them when they run out."""
        for source in self._parts:
            try:
                self.ledger.rates.release(source, self.holder)
            except SealbookError as error:
                self.tell("failed", error=str(error), failures=0)
