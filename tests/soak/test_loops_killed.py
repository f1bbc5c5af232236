"""R-CTL-4: six loops, five thousand partitions, and a minute of random SIGKILLs, on each database."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from sealbook.ledger import open_ledger
from tests.support.loops import Kills, check_ends, keys_of, kill_at_random, write_loop_book

CUSTOMERS, DAYS = 50, 100
LEASE = timedelta(seconds=10)


@pytest.mark.timeout(1200)
def test_a_minute_of_kills(ledger_url: str, tmp_path: Path, processes: ForkServerContext) -> None:
    """Every partition ends good, terminal or parked; attempts are verdicts; nothing published is lost."""
    file = write_loop_book(tmp_path, ledger_url, customers=CUSTOMERS, days=DAYS)
    killed = kill_at_random(processes, file, Kills(6, batch=100, seconds=60, pause=0.6, lease=LEASE))
    with open_ledger(ledger_url) as ledger:
        ends = check_ends(ledger, keys_of(CUSTOMERS, DAYS))
    assert ends.total() == CUSTOMERS * DAYS
    assert ends["good"] > 0.9 * ends.total(), (ends, killed)
    assert killed > 30
    print(f"{killed} kills: {dict(ends)}")  # noqa: T201 - the figures of a soak
