"""A ledger of open work in memory, made of the pure parts, with guards that can be left out one by one.

Beside it an auditor keeps its own account of claims and requests, and says which rule was broken first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sealbook.model.budget import WINDOW, Budget
from sealbook.model.failures import ErrorClass
from sealbook.model.keys import PartitionKey
from sealbook.model.partition_events import PartitionFact, PartitionFailed, PartitionPublished
from sealbook.model.partition_fold import FoldedPartition, fold_fact
from sealbook.model.retry import Retries
from sealbook.model.shares import Claimed, Flow, Shares, order_of
from sealbook.model.state import Status
from sealbook.model.status import Availability
from sealbook.model.work import Lane, Standing, Work, WorkKind, next_work

LEASE = 600
RETRIES = Retries(max_attempts=6)
LONGEST_WAIT = 16
"""How often others may be served while a customer has work ready: it has every other turn of the smallest
lane, which has one in seven; and a little more while lanes and flows come and go."""

Grant = tuple[PartitionKey, int]
"""A partition and a fence: names a claim for ever."""


@dataclass(frozen=True)
class Guards:
    """What a claim, and whoever works under it, is held to; each can be left out."""

    readiness: bool = True
    pauses: bool = True
    stops: bool = True
    shares: bool = True
    """Lanes and customers are served by their shares and weights."""
    passes_over: bool = True
    """What cannot be claimed does not hold up what can."""
    lease_is_free: bool = True
    lease_expires: bool = True
    fence_rises: bool = True
    """Also after the row was deleted and made again."""
    fence_at_heartbeat: bool = True
    fence_at_fact: bool = True
    """Verdicts and publications."""
    fence_at_finish: bool = True
    clock_never_back: bool = True
    budget_before: bool = True
    budget_until_settled: bool = True
    """A reservation counts as of its end, not of the claim."""
    crash_is_spent: bool = True
    settled_is_lost: bool = True
    """A lease whose reservation was settled is lost, also if nobody took over."""
    published_stays: bool = True
    quota_pauses: bool = True
    quota_is_no_attempt: bool = True
    deadline: bool = True
    """Nobody asks the source once its lease has run out by its own watch."""


class Broken(AssertionError):
    """A rule does not hold."""


@dataclass
class Claim:
    """A lease on the work of a partition, as its holder has it."""

    key: PartitionKey
    holder: str
    fence: int
    work: Work
    deadline: int
    """By the holder's own watch."""
    stage: WorkKind
    """What its holder does next."""
    run: int = 0
    sent: bool = False

    @property
    def grant(self) -> Grant:
        return self.key, self.fence


@dataclass
class Row:
    """A partition: its state, its open work, and who holds that."""

    partition: FoldedPartition
    work: Work | None = None
    fence: int = 0
    holder: str | None = None
    expires_at: int = 0
    was_published: bool = False
    verdicts: int = 0

    @property
    def standing(self) -> Standing:
        state, pointer = self.partition.state, self.partition.published
        authority = state.current_run_id if state.status is Status.SUCCESS else None
        if pointer is None:
            return Standing(authority, Availability.HIDDEN if self.was_published else Availability.NONE)
        is_newest = pointer.run_id == authority
        return Standing(authority, Availability.PUBLISHED if is_newest else Availability.BEHIND)


@dataclass
class Auditor:
    """An account of its own, by which every grant, write and request is held against the rules."""

    fences: dict[PartitionKey, int] = field(default_factory=dict)
    """The highest ever granted."""
    live: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """Fence and expiry of claims that nobody gave up."""
    closed: dict[str, int] = field(default_factory=dict)
    """By customer, until when the source said that a quota is used up."""
    waits: dict[str, int] = field(default_factory=dict)
    """By customer that has work ready: how often others were served since it was."""
    sent: list[tuple[int, Grant]] = field(default_factory=list)
    """When a request was sent, and under which claim."""
    covered_until: dict[Grant, int] = field(default_factory=dict)
    """By claim, until when a request sent under it is accounted for."""

    def granted(self, key: PartitionKey, row: Row, now: int, paused: bool) -> None:
        work = row.work
        if work is None or work.ready_at.timestamp() > now:
            raise Broken(f"{key} is claimed before its time")
        if paused:
            raise Broken(f"{key} is claimed while it is paused")
        if self.closed.get(key.customer_id, 0) > now:
            raise Broken(f"{key} is claimed while its quota is used up")
        if work.stop is not None:
            raise Broken(f"{key} is claimed though it has stopped: {work.stop}")
        if self.live.get(key, (0, 0))[1] > now:
            raise Broken(f"{key} is claimed twice at once")
        if row.fence <= self.fences.get(key, 0):
            raise Broken(f"{key} is claimed under the old fence {row.fence}")
        self.fences[key] = row.fence
        self.live[key] = (row.fence, row.expires_at)

    def served(self, customer_id: str, ready: set[str]) -> None:
        for other in ready - {customer_id}:
            self.waits[other] = self.waits.get(other, 0) + 1
            if self.waits[other] > LONGEST_WAIT:
                raise Broken(f"customer {other} waits for others too long")
        self.waits[customer_id] = 0

    def wrote(self, claim: Claim) -> None:
        if claim.fence != self.fences[claim.key]:
            raise Broken(f"{claim.key} is written under fence {claim.fence}, which is not the newest")

    def failed(
        self, fact: PartitionFailed, published: PartitionPublished | None, work: Work | None, row: Row
    ) -> None:
        if row.partition.published != published:
            raise Broken(f"{fact.key}: an attempt that failed touched what is published")
        is_quota = fact.error_class is ErrorClass.QUOTA
        if is_quota and work is not None and row.work is not None and row.work.tries != work.tries:
            raise Broken(f"{fact.key}: a quota that is used up counts as an attempt")

    def over(self, limit: int) -> None:
        for start, _ in self.sent:
            if sum(start <= at < start + WINDOW for at, _ in self.sent) > limit:
                raise Broken("a budget is overspent")
        for at, grant in self.sent:
            if at > self.covered_until.get(grant, at):
                raise Broken("a request is sent that is accounted for no more")


class MemoryLedger:
    """Open work, claims and budget; every time comes from one clock."""

    def __init__(
        self, keys: list[PartitionKey], limit: int, guards: Guards, clock: Callable[[], int]
    ) -> None:
        self.guards = guards
        self.limit = limit
        self.rows = {key: Row(FoldedPartition.unknown(key)) for key in keys}
        self.auditor = Auditor()
        self.runs = 0
        self.paused: dict[tuple[str, str | None], int] = {}
        """Until when, by source and customer; all customers where none is named."""
        self._budget = Budget(limit)
        self._reservations: dict[Grant, tuple[Lane, int, int, int]] = {}
        """Lane, requests, when they were reserved, and when the lease runs out."""
        self._clock = clock
        self._latest = 0
        self._shares = Shares[tuple[PartitionKey, int]]()
        self._queued: dict[PartitionKey, tuple[int, Lane, int]] = {}
        """The number under which a partition stands in the shares, its lane and its cost there."""
        self._numbers = 0

    def now(self) -> int:
        """Return the time; it never goes back."""
        now = self._clock()
        if self.guards.clock_never_back:
            now = self._latest = max(self._latest, now)
        return now

    def plan(self, key: PartitionKey, lane: Lane, ready_at: int) -> None:
        """Make a row for what is due."""
        self.rows[key].work = Work(key, lane, WorkKind.FETCH, _time(ready_at))

    def claim(self, holder: str, limit: int, watch: int) -> list[Claim]:
        """Claim what is served next."""
        now = self.now()
        self._sweep(now)
        claims: list[Claim] = []
        while len(claims) < limit:
            self._queue(now)
            claimed = self._take(now)
            if claimed is None:
                break
            [(key, number)] = claimed.items
            if self._queued.get(key, (0,))[0] != number:
                continue  # it was queued once more since, in another lane
            del self._queued[key]
            row = self.rows[key]
            if self._is_ready(row, now):
                claims.append(self._grant(key, row, holder, now, watch))
            elif not self.guards.passes_over:
                break
        if len(claims) < limit and any(self._could_be_claimed(row, now) for row in self.rows.values()):
            raise Broken("work that is ready is held up by work that is not")
        return claims

    def heartbeat(self, claim: Claim, watch: int) -> bool:
        """Make a lease last longer; False if it is lost."""
        if self.guards.fence_at_heartbeat and not self._holds(claim):
            return False
        row, now = self.rows[claim.key], self.now()
        row.expires_at = now + LEASE
        claim.deadline = watch + LEASE
        if self.auditor.live.get(claim.key, (0, 0))[0] == claim.fence:
            self.auditor.live[claim.key] = (claim.fence, row.expires_at)
        if claim.grant in self._reservations:
            lane, requests, at, _ = self._reservations[claim.grant]
            self._reservations[claim.grant] = (lane, requests, at, row.expires_at)
        return True

    def send(self, claim: Claim, watch: int) -> bool:
        """Note a request to the source; False if nobody may send it any more."""
        if self.guards.deadline and watch >= claim.deadline:
            return False
        self.auditor.sent.append((self.now(), claim.grant))
        claim.sent = True
        return True

    def tell(self, fact: PartitionFact, claim: Claim | None = None) -> bool:
        """Write a fact and what follows from it; False if its claim is lost."""
        if claim is not None:
            if self.guards.fence_at_fact and not self._holds(claim):
                return False
            self.auditor.wrote(claim)
        row, at = self.rows[fact.key], _time(self.now())
        before = row.partition.published, row.work
        row.partition = fold_fact(row.partition, fact, at)
        taken = fact
        if isinstance(fact, PartitionFailed) and not self.guards.published_stays:
            row.partition = replace(row.partition, published=None)
        if isinstance(taken, PartitionFailed) and not self.guards.quota_is_no_attempt:
            taken = replace(taken, error_class=ErrorClass.TRANSIENT)
        row.was_published |= row.partition.published is not None
        row.work = next_work(row.work, taken, row.standing, RETRIES, at)
        if row.work is None and not self.guards.fence_rises:
            row.fence = 0  # the row is deleted, and with it what was known of fences
        if isinstance(fact, PartitionFailed):
            self.auditor.failed(fact, *before, row)
        return True

    def finish(self, claim: Claim) -> None:
        """Release a lease, and settle what was reserved for it."""
        now = self.now()
        if not self.guards.fence_at_finish or self._holds(claim):
            self.rows[claim.key].holder = None
        if self.auditor.live.get(claim.key, (0, 0))[0] == claim.fence:
            del self.auditor.live[claim.key]
        if claim.grant in self._reservations:
            self._settle(claim.grant, int(claim.sent), now)

    def open_run(self) -> int:
        """Return a run that is newer than all others."""
        self.runs += 1
        return self.runs

    def pause(self, source: str, customer_id: str | None, until: int) -> None:
        """Let nothing of a scope be claimed until a time."""
        self.paused[source, customer_id] = max(until, self.paused.get((source, customer_id), 0))

    def next_moment(self) -> int | None:
        """Return when something that waits could be claimed next."""
        now = self.now()
        moments = [
            max(
                int(row.work.ready_at.timestamp()) + 1,
                row.expires_at if row.holder else 0,
                *(self.paused.get((row.work.key.source, who), 0) for who in (None, row.work.key.customer_id)),
            )
            for row in self.rows.values()
            if row.work is not None and row.work.stop is None
        ]
        opens_at = self._budget.opens_at()
        later = [moment for moment in (*moments, opens_at or 0) if moment > now]
        return min(later, default=None)

    def _take(self, now: int) -> Claimed[tuple[PartitionKey, int]] | None:
        if self.guards.shares:
            return self._shares.take(lambda lane, _: self._room(lane, now))
        for key, (number, lane, cost) in sorted(self._queued.items()):  # first in the order of keys
            if cost <= self._room(lane, now):
                return Claimed(Flow(lane, key.source, key.customer_id), ((key, number),), cost)
        return None

    def _queue(self, now: int) -> None:
        for key, row in self.rows.items():
            if row.work is None or not self._is_ready(row, now):
                continue
            lane, cost = _terms(row.work)
            if key in self._queued and self._queued[key][1:] == (lane, cost):
                continue
            self._numbers += 1
            self._queued[key] = (self._numbers, lane, cost)
            order = order_of(lane, key.logical_date, row.work.ready_at)
            self._shares.add(Flow(lane, key.source, key.customer_id), order, (key, self._numbers), cost)

    def _is_ready(self, row: Row, now: int) -> bool:
        work, guards = row.work, self.guards
        if work is None:
            return False
        held = row.holder is not None and (row.expires_at > now or not guards.lease_expires)
        return not (
            (guards.readiness and work.ready_at.timestamp() > now)
            or (guards.stops and work.stop is not None)
            or (guards.pauses and self._is_paused(work.key, now))
            or (guards.lease_is_free and held)
        )

    def _could_be_claimed(self, row: Row, now: int) -> bool:
        """Tell it by the rules alone, whatever guards are left out."""
        work = row.work
        if work is None or work.ready_at.timestamp() > now or work.stop is not None:
            return False
        if self._is_paused(work.key, now) or (row.holder is not None and row.expires_at > now):
            return False
        lane, cost = _terms(work)
        return cost <= self._budget.room(lane, now)

    def _is_paused(self, key: PartitionKey, now: int) -> bool:
        return any(self.paused.get((key.source, who), 0) > now for who in (None, key.customer_id))

    def _room(self, lane: Lane, now: int) -> int:
        return self._budget.room(lane, now) if self.guards.budget_before else self.limit

    def _grant(self, key: PartitionKey, row: Row, holder: str, now: int, watch: int) -> Claim:
        work = row.work
        assert work is not None
        # With the clock in it a fence rises also where the row was deleted and made again.
        row.fence = max(row.fence + 1, now * 1_000_000 if self.guards.fence_rises else 0)
        row.holder, row.expires_at = holder, now + LEASE
        self.auditor.granted(key, row, now, self._is_paused(key, now))
        ready = {other.customer_id for other, each in self.rows.items() if self._could_be_claimed(each, now)}
        self.auditor.served(key.customer_id, ready)
        lane, cost = _terms(work)
        if cost:
            self._budget.reserve(lane, cost)
            self._reservations[key, row.fence] = (lane, cost, now, row.expires_at)
        return Claim(key, holder, row.fence, work, watch + LEASE, work.kind, int(work.run_id or 0))

    def _holds(self, claim: Claim) -> bool:
        row = self.rows[claim.key]
        return row.fence == claim.fence and row.holder == claim.holder

    def _sweep(self, now: int) -> None:
        """Settle what holders reserved that are gone: it counts as spent, for as long as they might send.

        From then on their leases are lost, also if nobody took over: a heartbeat must not bring back a claim
        whose requests are accounted for no more.
        """
        for grant, (*_, expires_at) in list(self._reservations.items()):
            if expires_at <= now:
                row = self.rows[grant[0]]
                if row.fence == grant[1] and self.guards.settled_is_lost:
                    row.holder = None
                self._settle(grant, 1 if self.guards.crash_is_spent else 0, now + LEASE)

    def _settle(self, grant: Grant, spent: int, at: int) -> None:
        lane, requests, reserved_at, _ = self._reservations.pop(grant)
        self._budget.settle(lane, requests, spent, at if self.guards.budget_until_settled else reserved_at)
        self.auditor.covered_until[grant] = at if self.guards.budget_until_settled else reserved_at


def _terms(work: Work) -> tuple[Lane, int]:
    return work.lane, 1 if work.kind.asks_source else 0


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
