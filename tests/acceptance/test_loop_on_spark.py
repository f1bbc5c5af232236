"""R-CTL-4: loops on Spark that are killed, stopped past their lease, and stopped for good."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from sealbook.ledger import open_ledger
from sealbook.model import EventType, RunStatus
from tests.support.cli import run
from tests.support.killing import wait_until
from tests.support.loops import check_ends, keys_of, open_light, work_until_done, write_loop_book
from tests.support.schedule import work_in
from tests.support.stopping import started

LEASE = timedelta(seconds=6)
BATCH = 30


def slow_book(folder: Path, *, seconds: float = 0.3) -> Path:
    """Write a book of three customers with five days each, whose source takes its time."""
    file = write_loop_book(folder, "sqlite:///book.db", customers=3, days=5)
    settings = yaml.safe_load(file.read_text())
    settings["sources"]["demo"]["options"] = {"rows": 3, "latency_seconds": seconds}
    settings["sources"]["demo"]["limits"] = {"threads": 2}
    settings["spark"] = {"master": "local[2]"}
    file.write_text(yaml.safe_dump(settings))
    return file


def sealed(folder: Path) -> list[Path]:
    return list((folder / "raw").rglob("metadata.json"))


def begin(processes: ForkServerContext, file: Path) -> Any:
    worker = processes.Process(target=work_until_done, args=(file, LEASE, BATCH, True))
    worker.start()
    return worker


def told(folder: Path, event_type: EventType) -> bool:
    with open_ledger(f"sqlite:///{folder / 'book.db'}") as ledger:
        return any(each.event.event_type == event_type for each in ledger.run_store.fetch_feed(0, 1000))


def test_killed_in_the_middle_of_each_stage(tmp_path: Path, processes: ForkServerContext) -> None:
    """Somebody takes over what was fetched, sealed or judged; nothing is judged twice, and every run ends."""
    file = slow_book(tmp_path)
    moments = [
        lambda: bool(sealed(tmp_path)),
        lambda: told(tmp_path, EventType.PARTITION_SEALED),
        lambda: told(tmp_path, EventType.PARTITION_JUDGED),
    ]
    for moment in moments:
        worker = begin(processes, file)
        wait_until(moment)
        worker.kill()
        worker.join()
    worker = begin(processes, file)
    worker.join(200)
    assert worker.exitcode == 0
    with open_ledger(f"sqlite:///{tmp_path / 'book.db'}") as ledger:
        ends = check_ends(ledger, keys_of(3, 5))
        assert ends == {"good": 15}
        assert all(ledger.state(key).attempt_count == 1 for key in keys_of(3, 5))


def test_stopped_past_its_lease(tmp_path: Path, processes: ForkServerContext) -> None:
    """It can neither tell, judge nor publish what it lost; what it sealed does no harm."""
    file = slow_book(tmp_path)
    worker = begin(processes, file)
    wait_until(lambda: bool(sealed(tmp_path)))
    os.kill(worker.pid, signal.SIGSTOP)
    url = f"sqlite:///{tmp_path / 'book.db'}"
    with open_ledger(url) as ledger:
        lost = {row.key for row in work_in(ledger).values() if row.holder is not None}
        [first] = {row.claim_run_id for row in work_in(ledger).values() if row.claim_run_id is not None}
    other = begin(processes, file)
    other.join(200)
    assert other.exitcode == 0
    with open_ledger(url) as ledger:
        before = {key: ledger.state(key) for key in lost}
        assert all(state.current_run_id != first for state in before.values())
        os.kill(worker.pid, signal.SIGCONT)
        worker.join(200)
        assert worker.exitcode == 0
        assert {key: ledger.state(key) for key in lost} == before
        assert check_ends(ledger, keys_of(3, 5)) == {"good": 15}
        assert ledger.run_store.project_snapshot(str(first)).status is RunStatus.FAILED
    assert any(f"run_id={first}" in str(path) for path in sealed(tmp_path)), (
        "it sealed something all the same"
    )


def test_serving_until_it_is_stopped(tmp_path: Path) -> None:
    """SIGTERM in the middle of a batch lets go of it; health and metrics are there until then."""
    slow_book(tmp_path, seconds=1.0)
    with started(tmp_path, "control", "serve", "--port", "19464", "--log", "json") as command:
        command.wait_until(lambda: bool(sealed(tmp_path)))
        assert urlopen("http://127.0.0.1:19464/healthz").read() == b"ok\n"
        metrics = urlopen("http://127.0.0.1:19464/metrics").read().decode()
        assert "sealbook_control_held_partitions 15" in metrics
        assert 'sealbook_control_work{lane="backfill",standing="held"} 15' in metrics
        stopped = command.stop(signal.SIGTERM)
    assert stopped.code == 128 + signal.SIGTERM
    assert '"event":"serving"' in stopped.err
    with open_ledger(f"sqlite:///{tmp_path / 'book.db'}") as ledger:
        assert {row.holder for row in work_in(ledger).values()} == {None}
    ticked = run("control", "tick", "--format", "json", cwd=tmp_path)
    assert ticked.code == 0, ticked.err
    assert ticked.json["results"]["published"] == 15
    with open_light(tmp_path / "sealbook.yaml", LEASE) as book:
        book.ledger.runs.end_unended()
        assert check_ends(book.ledger, keys_of(3, 5)) == {"good": 15}
