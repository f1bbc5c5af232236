"""R-CTL-4, R-CTL-6: loops that share a book, are killed, stopped and taken over, on each database."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path

from sealbook.ledger import open_ledger
from sealbook.model.retry import RetryPolicies
from tests.support.loops import (
    Kills,
    check_ends,
    keys_of,
    kill_at_random,
    light_loop,
    open_light,
    write_loop_book,
)
from tests.support.schedule import work_in

LEASE = timedelta(seconds=3)


def test_a_tick_does_all_that_is_ready(ledger_url: str, tmp_path: Path) -> None:
    """What is due is opened, fetched, judged and published; what failed waits, or is parked."""
    file = write_loop_book(tmp_path, ledger_url, customers=4, days=5)
    with open_light(file, LEASE, RetryPolicies()) as book:
        ticked = light_loop(book).tick()
        assert sum(ticked.round.opened.values()) == 20
        assert ticked.tally.count("published") == 10
        rows = work_in(book.ledger)
        assert {row.key.customer_id for row in rows.values()} == {"c0", "c1"}
        assert {row.work.stop for row in rows.values() if row.key.customer_id == "c1"} == {"permanent"}
        assert all(row.work.tries == 1 for row in rows.values())
        assert ticked.ended == "done"
        assert ticked.next_at is not None


def test_a_tick_keeps_to_its_bound(ledger_url: str, tmp_path: Path) -> None:
    with open_light(write_loop_book(tmp_path, ledger_url, customers=4, days=5), LEASE) as book:
        ticked = light_loop(book, 3).tick(partitions=7)
        assert (ticked.batches, ticked.ended) == (3, "bound")
        assert ticked.tally.requests.total() == 7
        assert light_loop(book).tick(seconds=0).batches == 0


def test_loops_that_are_killed(ledger_url: str, tmp_path: Path, processes: ForkServerContext) -> None:
    """Whoever is left does all of it; `make soak` does the same with more of everything, for a minute."""
    file = write_loop_book(tmp_path, ledger_url, customers=10, days=20)
    killed = kill_at_random(processes, file, Kills(3, batch=25, seconds=6, pause=0.5))
    with open_ledger(ledger_url) as ledger:
        ends = check_ends(ledger, keys_of(10, 20))
        assert (ends["good"], ends["terminal"], ends["parked"]) == (160, 20, 20), killed
    assert killed > 3
