"""R-EVT-8: a projector that is killed at any moment neither skips nor repeats."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import timedelta
from multiprocessing.context import ForkServerContext

from sealbook.ledger import open_ledger
from sealbook.model.events import RunEvent

KILLS = 50
RUNS = [f"run-{number}" for number in range(5)]


def project(url: str) -> None:
    """Project for ever, a few events at a time."""
    with open_ledger(url) as ledger:
        ledger.run_store.projector(lease=timedelta(milliseconds=20), batch=7).follow()


def test_a_projector_killed_fifty_times(ledger_url: str, processes: ForkServerContext) -> None:
    """Killed while it works, again and again, it ends with what a replay gives."""
    dice = random.Random(9)
    with open_ledger(ledger_url) as ledger:
        store = ledger.run_store
        moved = 0
        for kill in range(KILLS):
            for run_id in RUNS:
                store.append_events(
                    [
                        RunEvent.new(run_id, "RunStarted"),
                        RunEvent.new(run_id, "StepStarted", "extract", kill),
                        *(
                            RunEvent.new(
                                run_id,
                                "PartitionSealed",
                                f"extract/{kill}/{n}",
                                event_data={"recordCount": n},
                            )
                            for n in range(8)
                        ),
                        RunEvent.new(
                            run_id, "StepCompleted", "extract", kill, event_data={"artifacts": [kill]}
                        ),
                    ]
                )
            before = store.projector().lag().events
            projector = processes.Process(target=project, args=(ledger_url,))
            projector.start()
            while store.projector().lag().events >= before:
                time.sleep(0.002)  # until it is at work
            time.sleep(dice.uniform(0, 0.02))
            assert projector.pid is not None
            os.kill(projector.pid, signal.SIGKILL)
            projector.join()
            moved += store.projector().lag().events > 0
        assert moved, "it was killed in the middle of work at least once"
        assert store.projector().catch_up(patience=60).events == 0
        projected = {run.snapshot.run_id: run for run in store.list_runs()}
        for run_id in RUNS:
            assert not projected[run_id].stale
            assert projected[run_id].snapshot == store.project_snapshot(run_id)
            assert projected[run_id].snapshot.counters.partitions_sealed == KILLS * 8
            assert len(projected[run_id].snapshot.artifacts) == KILLS
