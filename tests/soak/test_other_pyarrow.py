"""R-WH-2: stagers with two versions of pyarrow at once, and a reader at work all the while: `make soak`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from sealbook.ledger import open_ledger
from sealbook.warehouse.layout import part_paths
from tests.acceptance.test_stagers_race import KEYS, accepted, publish, seal_wave, stage, watch

pytestmark = pytest.mark.timeout(3600)

ROOT = Path(__file__).parents[2]
OLDEST = "20.0.0"
"""The oldest pyarrow that Sealbook takes."""

WAVES = 100
"""So many times the runs of all KEYS: five thousand rounds of two stagers that planned together."""


@pytest.fixture(scope="module")
def other_pyarrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with another pyarrow, to be put in front of the path."""
    folder = tmp_path_factory.mktemp("pyarrow")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    subprocess.run([*install, f"pyarrow=={OLDEST}"], check=True)
    return folder


class Other:
    """The stager in another process."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin, self._stdout = stdin, stdout

    def hear(self) -> str:
        return self._stdout.readline().strip()

    def tell(self) -> str:
        """Have it take its next step, and return what it says then."""
        self._stdin.write("go\n")
        self._stdin.flush()
        return self.hear()


@contextmanager
def other_stager(pyarrow: Path, folder: Path, url: str) -> Iterator[Other]:
    path = os.pathsep.join(filter(None, [str(pyarrow), str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.other_stager", str(folder), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Other(process.stdin, process.stdout)
        process.stdin.close()


def test_no_file_under_a_pointer_ever_changes(
    tmp_path: Path, processes: ForkServerContext, other_pyarrow: Path
) -> None:
    """Of the two, each publishes now and then; what one has published, the other leaves as it is."""
    url = f"sqlite:///{tmp_path}/book.db"
    ours = theirs = 0
    with (
        open_ledger(url) as ledger,
        other_stager(other_pyarrow, tmp_path, url) as other,
        processes.Pool(1) as pool,
        processes.Manager() as manager,
        ThreadPoolExecutor(1) as asking,
    ):
        assert other.hear() == OLDEST != pa.__version__
        ready, done = manager.Barrier(2), manager.Event()
        watching = pool.apply_async(watch, (tmp_path, url, ready, done))
        ready.wait()
        for wave in range(WAVES):
            ledger.judge(accepted(KEYS, seal_wave(tmp_path / "raw", wave)))
            items = list(ledger.pointers.plan())
            assert other.tell() == str(len(items)) == str(len(KEYS))
            their_answer = asking.submit(other.tell)
            # From the other end every other time, so that each is first with some.
            staged = stage("first", tmp_path, items)
            ours += publish(ledger, staged[::-1] if wave % 2 else staged)
            theirs += int(their_answer.result())
        done.set()
        assert watching.get() >= len(KEYS)

        assert ours + theirs == WAVES * len(KEYS)
        assert ours
        assert theirs
        for each in ledger.pointers.stored_artifacts():
            [path] = part_paths(each)
            assert sha256((tmp_path / "warehouse" / path).read_bytes()).hexdigest() == each.digest
