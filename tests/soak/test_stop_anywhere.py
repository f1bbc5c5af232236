"""Every command that works on a run, stopped at moments spread over all of its time: `make soak`."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.test_cli_run import write_book
from tests.acceptance.test_cli_stop import DAYS, SIGNALS, check_all_published
from tests.support.cli import run
from tests.support.stopping import is_java, started

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark"), pytest.mark.timeout(3600)]

ROUNDS = 20
EARLIER: dict[str, list[tuple[str, ...]]] = {
    "run": [],
    "extract": [],
    "validate": [("extract", *DAYS)],
    "load": [("extract", *DAYS), ("validate",)],
}
LATER: dict[str, list[tuple[str, ...]]] = {
    "run": [],
    "extract": [("validate",), ("load",)],
    "validate": [("load",)],
    "load": [],
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("stage", EARLIER)
def test_stopped_at_any_moment(tmp_path: Path, stage: str, number: signal.Signals) -> None:
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    write_book(prepared, latency_seconds=0.1)
    for earlier in EARLIER[stage]:
        assert run(*earlier, cwd=prepared).code == 0
    arguments = (stage, *(DAYS if stage in ("run", "extract") else ()))
    undisturbed = shutil.copytree(prepared, tmp_path / "undisturbed")
    with started(undisturbed, *arguments) as command:
        command.wait_for_process(is_java)
        before = time.monotonic()
        assert command.process.wait(300) == 0
    seconds = time.monotonic() - before

    for place in range(ROUNDS):
        book = shutil.copytree(prepared, tmp_path / f"book{place}")
        with started(book, *arguments) as command:
            command.wait_for_process(is_java)
            try:
                command.process.wait(seconds * (place + 0.5) / ROUNDS)
            except subprocess.TimeoutExpired:
                stopped = command.stop(number)
                if stopped.code != 0:  # else all was done and said
                    stopped.check(book)
            else:
                assert command.process.returncode == 0
        for later in LATER[stage]:
            assert run(*later, cwd=book).code == 0
        check_all_published(book)
        shutil.rmtree(book)
