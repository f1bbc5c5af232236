"""Workers that share a ledger in memory, with the luck of one seed: they crash, stall and are slow."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random

from sealbook.model import Outcome
from sealbook.model.failures import ErrorClass
from sealbook.model.keys import PartitionKey
from sealbook.model.state import Status
from sealbook.model.work import Lane, WorkKind, mark_terminal
from tests.support.control_ledger import LEASE, Broken, Claim, Guards, MemoryLedger
from tests.support.ledger import run_id
from tests.support.partition_facts import failed, judged, published, requeued, sealed

START = 1_000_000_000
"""When a world begins, in seconds since 1970."""
REQUESTS_PER_DAY = 20
_HOUR = 3_600
_FAULTY_STEPS = 120
_QUIET_STEPS = 2_000


@dataclass
class Worker:
    """A process of the loop; one that crashed is followed by one of another name."""

    name: str
    claims: list[Claim] = field(default_factory=list)
    stalled_until: int = 0
    mute_until: int = 0
    """Until when its heartbeats get lost."""


class World:
    """A few partitions of two customers, one of whom has most of the work, and three workers."""

    def __init__(self, seed: int, guards: Guards) -> None:
        self.random = Random(seed)
        self.time = START
        self.clock_is_off = 0
        self.jumped_at = START
        keys = [
            PartitionKey("ads", customer, "clicks", date(2001, 9, 1) + timedelta(days=day))
            for customer, days in (("big", 10), ("small", 2))
            for day in range(days)
        ]
        self.ledger = MemoryLedger(keys, REQUESTS_PER_DAY, guards, lambda: self.time + self.clock_is_off)
        for key in keys:
            lane = self.random.choice([Lane.FRESH, Lane.BACKFILL])
            self.ledger.plan(key, lane, START + self.random.choice([0, 0, _HOUR]))
        self.guards = guards
        self.names = 0
        self.workers = [self._worker() for _ in range(3)]
        self.judged: dict[int, PartitionKey] = {}
        self.verdicts = dict.fromkeys(keys, 0)
        self.is_quiet = False

    def run(self) -> None:
        """Live through faults, then on without any until all is done; Broken says what went wrong."""
        for _ in range(_FAULTY_STEPS):
            self._pass_time()
            self._disturb()
            self._step(self.random.choice(self.workers))
        self.is_quiet = True
        self.ledger.paused.clear()
        self.ledger.auditor.closed.clear()
        for _ in range(_QUIET_STEPS):
            if self._is_done():
                break
            self._pass_time()
            self._step(self.random.choice(self.workers))
        else:
            raise Broken("the work never ends")
        self._audit()

    def _is_done(self) -> bool:
        open_work = (row.work for row in self.ledger.rows.values())
        return all(work is None or work.stop is not None for work in open_work) and not any(
            worker.claims for worker in self.workers
        )

    def _audit(self) -> None:
        self.ledger.auditor.over(REQUESTS_PER_DAY)
        for key, row in self.ledger.rows.items():
            state = row.partition.state
            if state.attempt_count != self.verdicts[key]:
                raise Broken(f"{key} has {state.attempt_count} attempts, and {self.verdicts[key]} verdicts")
            if row.work is None and row.standing.authority is None:
                raise Broken(f"{key} is neither good, terminal nor parked")
            if row.standing.to_load is not None and row.work is None:
                raise Broken(f"{key} is good, and nobody will load it")

    # Faults, and an operator

    def _pass_time(self) -> None:
        busy = any(worker.claims for worker in self.workers)
        moment = None if busy else self.ledger.next_moment()
        if moment is not None and self.random.random() < 0.5:
            self.time = max(self.time, moment - self.clock_is_off)
        else:
            self.time += self.random.choice([1, 5, 60, 200])

    def _disturb(self) -> None:
        """Have one thing in a few steps go wrong."""
        worker = self.random.choice(self.workers)
        match self.random.randrange(30):
            case 0 | 1:
                self.workers[self.workers.index(worker)] = self._worker()  # it crashed
            case 2 | 3:
                worker.stalled_until = self.time + self.random.choice([LEASE // 2, 3 * LEASE])
            case 4 | 5:
                worker.mute_until = self.time + self.random.choice([LEASE // 2, 3 * LEASE])
            case 6 if self.time - self.jumped_at > LEASE:  # a clock that never stands still tells nothing
                self.jumped_at = self.time
                self.clock_is_off += self.random.choice([-900, -60, 60, 900])
            case 7:
                customer = self.random.choice(["big", "small", None])
                self.ledger.pause("ads", customer, self.ledger.now() + _HOUR)
            case 8:
                self._operate()

    def _operate(self) -> None:
        key, row = self.random.choice(list(self.ledger.rows.items()))
        if row.work is not None and self.random.random() < 0.3:
            row.work = mark_terminal(row.work)
        elif row.partition.state.status is Status.FAILED:
            last = max(run for run, judged_key in self.judged.items() if judged_key == key)
            self.ledger.tell(requeued(last, key))
        elif row.work is None and row.standing.authority is not None:
            self.ledger.plan(key, Lane.REFRESH, self.ledger.now())

    def _worker(self) -> Worker:
        self.names += 1
        return Worker(f"worker {self.names}")

    # Work

    def _step(self, worker: Worker) -> None:
        """Have a worker do one thing."""
        if worker.stalled_until > self.time:
            return
        if not worker.claims:
            worker.claims = self.ledger.claim(worker.name, self.random.choice([1, 3]), self.time)
            return
        if self.time >= worker.mute_until and self.random.random() < 0.5:
            worker.claims = [claim for claim in worker.claims if self.ledger.heartbeat(claim, self.time)]
        if worker.claims and self.random.random() < 0.8:
            claim = self.random.choice(worker.claims)
            if self._work(claim):
                worker.claims.remove(claim)

    def _work(self, claim: Claim) -> bool:
        """Take a claim one step further; True once there is nothing more to do under it."""
        match claim.stage:
            case WorkKind.FETCH:
                goes_on = self._fetch(claim)
            case WorkKind.JUDGE:
                goes_on = self._judge(claim)
            case WorkKind.LOAD:
                goes_on = self._load(claim)
        if not goes_on:
            self.ledger.finish(claim)
        return not goes_on

    def _fetch(self, claim: Claim) -> bool:
        """Ask the source: it answers, fails, or says that a quota is used up."""
        if not self.ledger.send(claim, self.time):
            return False  # its time is up: whoever took over does it
        run = self.ledger.open_run()
        luck = 1.0 if self.is_quiet else self.random.random()
        if luck >= 0.28:
            claim.run, claim.stage = run, WorkKind.JUDGE
            return self.ledger.tell(sealed(run, claim.key))  # by whomever: a seal takes no authority
        error_class = (
            ErrorClass.TRANSIENT if luck < 0.15 else ErrorClass.PERMANENT if luck < 0.18 else ErrorClass.QUOTA
        )
        fact = failed(run, error_class, retry_after=2 * _HOUR, key=claim.key)
        if self.ledger.tell(fact, claim) and error_class is ErrorClass.QUOTA:
            until = self.ledger.now() + 2 * _HOUR
            self.ledger.auditor.closed[claim.key.customer_id] = until
            if self.guards.quota_pauses:
                self.ledger.pause(claim.key.source, claim.key.customer_id, until)
        return False

    def _judge(self, claim: Claim) -> bool:
        good = self.is_quiet or self.random.random() < 0.8
        outcome = Outcome.ACCEPTED if good else Outcome.REJECTED
        again = f"once more by {claim.fence}" if claim.run in self.judged else None
        if not self.ledger.tell(judged(claim.run, outcome, again=again, key=claim.key), claim):
            return False
        self.judged[claim.run] = claim.key
        self.verdicts[claim.key] += 1
        claim.stage = WorkKind.LOAD
        return good

    def _load(self, claim: Claim) -> bool:
        if self.ledger.rows[claim.key].standing.to_load == run_id(claim.run):
            self.ledger.tell(published(claim.run, claim.key), claim)
        return False
