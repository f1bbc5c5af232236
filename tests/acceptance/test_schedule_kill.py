"""R-CTL-4: workers that are killed or stopped in the middle of anything, on each database."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import EventType, Status, Verdict
from sealbook.model.claims import Claims, Waiting
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.retry import Jitter, Retries, RetryPolicies
from sealbook.model.work import WorkKind
from tests.support.killing import wait_until
from tests.support.pointers import staged_run
from tests.support.schedule import key_of, open_work, work_in, work_of

TERMS = Terms(["demo"])
LEASE = timedelta(seconds=2)
PARTITIONS = [key_of(f"c{number % 7}", number) for number in range(150)]
WORKERS = 4
KILLS = 12
RETRIES = RetryPolicies(Retries((timedelta(milliseconds=50),), Jitter.NONE, max_attempts=None))
"""What lost its worker twice waits: here not for the minutes that it is given elsewhere."""


def _work(url: str, seed: int) -> None:
    """Claim, judge and publish until nothing is open; the process may be killed anywhere in it."""
    draw = random.Random(seed)
    with open_ledger(url, retries=RETRIES) as ledger:
        while work_in(ledger):
            claims = ledger.scheduler.claim(
                f"worker {os.getpid()}", TERMS, limit=draw.randint(1, 9), lease=LEASE
            )
            if claims.waiting is Waiting.IDLE:
                time.sleep(0.02)
            _take_all_the_way(ledger, claims)


def _take_all_the_way(ledger: Ledger, claims: Claims) -> None:
    run_id = ledger.open_run()
    fetched = [claim.key for claim in claims if claim.kind is WorkKind.FETCH]
    verdicts = [
        Verdict.accept(key, run_id, schema_version="1", record_count=10, validator_version="v1", checks=())
        for key in fetched
    ]
    judged = ledger.verdicts.judge_under(verdicts, claims.fences)
    runs = {state.key: state.current_run_id for state in judged.states}
    runs |= {claim.key: claim.run_id for claim in claims if claim.kind is WorkKind.LOAD}
    staged = [staged_run(key, run) for key, run in runs.items() if run is not None]
    ledger.pointers.swap(staged, claims.fences)
    ledger.scheduler.release(claims.fences)


def test_killed_workers(ledger_url: str, processes: ForkServerContext) -> None:
    """Every partition ends published, judged once, however often workers die; nothing stays open."""
    with open_ledger(ledger_url) as ledger:
        open_work(ledger, [work_of(key, ready_at=ledger.reader.now()) for key in PARTITIONS])
        draw = random.Random(7)
        workers = [processes.Process(target=_work, args=(ledger_url, seed)) for seed in range(WORKERS)]
        for worker in workers:
            worker.start()
        for seed in range(KILLS):
            left = len(PARTITIONS) * (KILLS - seed) // (KILLS + 1)
            wait_until(partial(_is_left, ledger, left))
            place = draw.randrange(WORKERS)
            workers[place].kill()
            workers[place].join()
            workers[place] = processes.Process(target=_work, args=(ledger_url, 100 + seed))
            workers[place].start()
        for worker in workers:
            worker.join(120)
            assert worker.exitcode == 0
        assert work_in(ledger) == {}
        for key in PARTITIONS:
            state = ledger.state(key)
            judged = [
                event
                for event in ledger.reader.partition_log.events(key)
                if event.event_type == EventType.PARTITION_JUDGED
            ]
            assert (state.status, state.attempt_count, len(judged)) == (Status.SUCCESS, 1, 1), key
        assert {each.key for each in ledger.pointers.open_pointers()} == set(PARTITIONS)


def _is_left(ledger: Ledger, most: int) -> bool:
    return len(work_in(ledger)) <= most


def _stopped_worker(url: str, pipe: Connection) -> None:
    """Claim, say so, and go on when told to: it knows nothing of what happened meanwhile."""
    with open_ledger(url) as ledger:
        claims = ledger.scheduler.claim("ann", TERMS, limit=1, lease=LEASE)
        pipe.send(claims.fences)
        pipe.recv()
        [key] = claims.fences
        run_id = ledger.open_run()
        failed = PartitionFailed(
            key=key,
            run_id=run_id,
            attempt="1",
            failed_stage=Stage.EXTRACT,
            error_class=ErrorClass.TRANSIENT,
            error="no answer",
        )
        verdict = Verdict.reject(key, run_id, error_message="bad", validator_version="v1", checks=())
        state = ledger.state(key)
        pipe.send(
            (
                ledger.scheduler.heartbeat("ann", claims.fences),
                ledger.runs.tell([failed], claims.fences),
                ledger.verdicts.judge_under([verdict], claims.fences).lost,
                ledger.pointers.swap([staged_run(key, state.current_run_id or run_id)], claims.fences).lost,
                ledger.scheduler.release(claims.fences),
            )
        )


def test_a_worker_that_was_stopped_past_its_lease(ledger_url: str, processes: ForkServerContext) -> None:
    """It can neither judge nor publish what it lost, and its failure counts as none."""
    [key] = PARTITIONS[:1]
    with open_ledger(ledger_url) as ledger:
        open_work(ledger, [work_of(key, ready_at=ledger.reader.now())])
        here, there = processes.Pipe()
        worker = processes.Process(target=_stopped_worker, args=(ledger_url, there))
        worker.start()
        old = here.recv()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        taken: list[Claims] = []

        def take_over() -> bool:
            taken.append(ledger.scheduler.claim("bob", TERMS, limit=1))
            return len(taken[-1]) == 1

        wait_until(take_over)
        fences = taken[-1].fences
        assert fences[key] > old[key]
        run_id = ledger.open_run()
        accepted = Verdict.accept(
            key, run_id, schema_version="1", record_count=10, validator_version="v1", checks=()
        )
        assert ledger.verdicts.judge_under([accepted], fences).lost == []
        before, row = ledger.state(key), work_in(ledger)
        os.kill(worker.pid, signal.SIGCONT)
        here.send("go on")
        assert here.recv() == (set(), [key], [key], (key,), set())
        worker.join(60)
        assert (ledger.state(key), work_in(ledger)) == (before, row)
        assert list(ledger.pointers.open_pointers()) == []
        assert ledger.pointers.swap([staged_run(key, run_id)], fences).loaded == (key,)
        assert work_in(ledger) == {}
