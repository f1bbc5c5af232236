"""Processes that load the event store while it is measured."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from multiprocessing.synchronize import Event as Signal

from sealbook.ledger import open_ledger
from sealbook.model.events import RunEvent
from tests.support.runs import new_run_id

PARTITION = "google_ads/1234567890/campaign_daily/2026-01-01"
_processes = multiprocessing.get_context("spawn")

DATA: dict[str, object] = {
    "schemaVersion": "1",
    "recordCount": 200,
    "payloadBytes": 31_000,
    "payloadSha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}


def sealed(run_id: str, first: int, count: int) -> list[RunEvent]:
    """Make events as an extraction writes them."""
    return [
        RunEvent.new(run_id, "PartitionSealed", f"extract/{number}", event_data=DATA, partition=PARTITION)
        for number in range(first, first + count)
    ]


def seconds_of_writers(url: str, runs: Sequence[str], first: int, count: int) -> float:
    """Return the time that writers, one for each run named, take to append so many events one by one."""
    barrier = _processes.Barrier(len(runs) + 1)
    writers = [
        _processes.Process(target=_write, args=(url, run_id, first + place * count, count, barrier))
        for place, run_id in enumerate(runs)
    ]
    for writer in writers:
        writer.start()
    barrier.wait()
    started = time.perf_counter()
    barrier.wait()
    passed = time.perf_counter() - started
    for writer in writers:
        writer.join()
    return passed


def _write(url: str, run_id: str, first: int, count: int, barrier: Barrier) -> None:
    with open_ledger(url) as ledger:
        ledger.run_store.append_event(RunEvent.new(new_run_id(), "RunStarted"))  # opens its connection
        events = sealed(run_id, first, count)
        barrier.wait()
        for event in events:
            ledger.run_store.append_event(event)
        barrier.wait()


def highest_lag(url: str, events_a_second: int, for_seconds: int) -> float:
    """Return the highest lag, in seconds, of a projector process while so many events a second arrive."""
    stop = _processes.Event()
    projector = _processes.Process(target=_project, args=(url, stop))
    projector.start()
    run_id = new_run_id()
    pause, size = 0.05, int(events_a_second * 0.05)
    ticks = int(for_seconds / pause)
    batches = [sealed(run_id, tick * size, size) for tick in range(ticks)]
    highest = 0.0
    with open_ledger(url) as ledger:
        ledger.run_store.append_event(RunEvent.new(run_id, "RunStarted"))
        while ledger.run_store.projector().lag().events:  # until the projector is up
            time.sleep(pause)
        started = time.perf_counter()
        for tick, batch in enumerate(batches):
            time.sleep(max(0.0, started + tick * pause - time.perf_counter()))
            ledger.run_store.append_events(batch)
            highest = max(highest, ledger.run_store.projector().lag().seconds)
    stop.set()
    projector.join()
    return highest


def _project(url: str, stop: Signal) -> None:
    with open_ledger(url) as ledger:
        ledger.run_store.projector().follow(stop.is_set)
