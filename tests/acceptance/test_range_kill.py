"""SIGKILL at every step of a range: days are sealed whole, in their order, and a rerun seals the rest."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from sealbook.clock import utc_now
from sealbook.extract.results import Ending
from sealbook.model import RunId
from sealbook.raw import RawStore, Row, leftovers
from sealbook.raw.leftovers import LEAST_AGE
from tests.support.ranged import RangedSource, days, ranged_extractor

DAYS = tuple(days(3))
ROWS: dict[int, list[Row]] = {0: [{"row": number} for number in range(300)], 2: [{"row": 7}]}
# What Python reports before it touches a file or a directory.
FILE_EVENTS = ("open", "os.mkdir", "os.link", "os.rename", "os.remove")


def source() -> RangedSource:
    """Return a source of three days, the second of which is empty."""
    return RangedSource({DAYS[number].logical_date: rows for number, rows in ROWS.items()})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def until_access(folder: Path, run_id: RunId, step: int) -> None:
    """Extract the range, and die right before the given access to a file or directory of it."""
    steps = iter(range(1, step))

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event in FILE_EVENTS and "run_id=" in str(args[0]) and next(steps, None) is None:
            die()

    sys.addaudithook(watch)
    ranged_extractor(folder, source(), run_id=run_id)([DAYS])


def until_row(folder: Path, run_id: RunId, step: int) -> None:
    """Extract the range, and die when so many rows have come; the last step is the end of the stream."""
    given = source()

    def rows() -> Iterator[tuple[object, Row]]:
        yield from list(given.fetch_range(DAYS, None))[:step]  # type: ignore[arg-type]
        die()

    ranged_extractor(folder, RangedSource(stream=rows()), run_id=run_id)([DAYS])  # type: ignore[arg-type]


def killed(
    processes: ForkServerContext, work: Callable[..., None], folder: Path, run_id: RunId, step: int
) -> bool:
    """Say whether the process came to the step."""
    process = processes.Process(target=work, args=(folder, run_id, step))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def sealed_so_far(folder: Path, run_id: RunId) -> list[int]:
    """Return how many rows the sealed days have, which are read whole."""
    store = RawStore.open(str(folder / "raw"))
    found = [key for key in DAYS if store.is_sealed(key, run_id)]
    assert found == list(DAYS[: len(found)])
    return [len(list(store.read(key, run_id).lines())) for key in found]


def finish(folder: Path, run_id: RunId, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run ends what is left of it, and a clean-up finds all that was in vain."""
    before = len(sealed_so_far(folder, run_id))
    results = ranged_extractor(folder, source(), run_id=run_id)([DAYS])
    assert [each.ending for each in results] == [Ending.SKIPPED] * before + [Ending.SEALED] * (3 - before)
    store = RawStore.open(str(folder / "raw"))
    with monkeypatch.context() as later:
        later.setattr(leftovers, "utc_now", lambda: utc_now() + LEAST_AGE)
        store.remove(store.leftovers(age=LEAST_AGE))
    assert sealed_so_far(folder, run_id) == [300, 0, 1]
    assert len(store._storage.names("demo")) == 2 * len(DAYS)


def test_killed_before_each_access_to_a_folder(
    tmp_path: Path, processes: ForkServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step after step, until there is none left to die before."""
    seen = set()
    for step in count(1):
        folder = tmp_path / f"killed-before-{step}"
        run_id = ranged_extractor(folder, source()).run_id
        if not killed(processes, until_access, folder, run_id, step):
            break
        found = sealed_so_far(folder, run_id)
        assert found == [300, 0, 1][: len(found)]
        seen.add(len(found))
        finish(folder, run_id, monkeypatch)
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("step", [0, 1, 299, 300, 301])
def test_killed_while_the_stream_comes_seals_nothing(
    tmp_path: Path, processes: ForkServerContext, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Not even a day that has come whole: only the end of the stream says that it has."""
    run_id = ranged_extractor(tmp_path, source()).run_id
    assert killed(processes, until_row, tmp_path, run_id, step)
    assert sealed_so_far(tmp_path, run_id) == []
    finish(tmp_path, run_id, monkeypatch)
