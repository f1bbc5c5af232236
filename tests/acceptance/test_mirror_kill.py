"""A mirror killed at any step: each commit equals one instant of the book, and in the end none is missing."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.support.mirror_kills import KilledMirror, kill_often


@pytest.mark.parametrize("kind", ["delta inside", "iceberg"])
def test_killed_at_many_steps(
    ledger_url: str, tmp_path: Path, processes: ForkServerContext, kind: str
) -> None:
    with closing(KilledMirror(processes, kind, ledger_url, str(tmp_path))) as killed:
        kill_often(killed, 10)
