"""A mirror that is killed a thousand times, at all of its steps, in each format."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.support.mirror_kills import KilledMirror, kill_often
from tests.support.mirrors import KINDS


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_kills(ledger_url: str, tmp_path: Path, processes: ForkServerContext, kind: str) -> None:
    """Each commit equals one instant of the book, in their order, and the last one the present."""
    with closing(KilledMirror(processes, kind, ledger_url, str(tmp_path))) as killed:
        kill_often(killed, 1000)
        print(f"{killed.kills} kills, {len(killed.lake.commits())} commits")  # noqa: T201 - the figures of a soak
