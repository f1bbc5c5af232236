"""A payload of any length passes through a raw store in little memory."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import pytest

from sealbook.raw import RawStore
from tests.support.s3 import KEY, RUN, seal_rows

ROWS = 1_000_000
LINE = b'{"text":"' + b"x" * 88 + b'"}'


def memory(field: str) -> int:
    """Return what Linux says of this process alone, in MB; getrusage would count its parent's memory, too."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) // 1024


def extract_a_million(url: str, report: str) -> None:
    """Write, seal and read 100 MB, and report by how many MB the process grew at most."""
    store = RawStore.open(url)
    before = memory("VmRSS")
    sealed = seal_rows(store, (LINE for _ in range(ROWS)))
    assert (sealed.record_count, sealed.payload_bytes) == (ROWS, 100_000_000)
    assert sum(map(len, store.read(KEY, RUN).chunks())) == 100_000_000
    Path(report).write_text(str(memory("VmHWM") - before))


@pytest.mark.parametrize(("kind", "most"), [("folder", 25), ("s3", 75)])
def test_memory_stays_flat_for_a_million_rows(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, most: int
) -> None:
    """Never the whole payload in memory, to write or to read; on S3 some parts of it are in flight."""
    report = tmp_path / "grown"
    url = request.getfixturevalue(f"{kind}_url")
    process = multiprocessing.get_context("spawn").Process(target=extract_a_million, args=(url, str(report)))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert int(report.read_text()) < most
