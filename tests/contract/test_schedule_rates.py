"""R-CTL-10: the shares of a rate that workers have never add up to more than the limit, on each database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from tests.support.schedule import SetClock

LIMIT = 12.0
SHARE = timedelta(seconds=30)


def test_any_order_of_workers_that_come_and_go(new_ledger_url: Callable[[], str]) -> None:
    """Whoever renews in time keeps at most an equal part, and the sum is never over."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([0, 5, 20, 31])), max_size=25))
    def check(steps: list[tuple[str, int]]) -> None:
        clock = SetClock()
        shares: dict[str, tuple[float, object]] = {}
        with open_ledger(new_ledger_url(), clock=clock) as ledger:
            for holder, seconds in steps:
                now = clock.move(seconds=seconds)
                mine = ledger.rates.renew("demo", holder, LIMIT, SHARE)
                shares = {name: each for name, each in shares.items() if each[1] > now}  # type: ignore[operator]
                shares[holder] = (mine, now + SHARE)
                assert sum(share for share, _ in shares.values()) <= LIMIT * (1 + 1e-9)
                assert 0 <= mine <= LIMIT / len(shares) * (1 + 1e-9)
            for holder in "abcd" * 2:  # once all have renewed, all have the same
                ledger.rates.renew("demo", holder, LIMIT, SHARE)
            again = [ledger.rates.renew("demo", holder, LIMIT, SHARE) for holder in "abcd"]
            assert again == pytest.approx([LIMIT / 4] * 4)

    check()


def test_a_share_that_is_left_is_there_for_the_others(ledger: Ledger) -> None:
    assert ledger.rates.renew("demo", "a", LIMIT) == LIMIT
    assert ledger.rates.renew("demo", "b", LIMIT) == 0, "the first one has not come down yet"
    assert ledger.rates.renew("other", "b", LIMIT) == LIMIT, "sources have nothing to do with each other"
    assert ledger.rates.renew("demo", "a", LIMIT) == LIMIT / 2
    assert ledger.rates.renew("demo", "b", LIMIT) == LIMIT / 2
    ledger.rates.release("demo", "a")
    assert ledger.rates.renew("demo", "b", LIMIT) == LIMIT


def test_many_that_come_at_once(ledger: Ledger) -> None:
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(partial(ledger.rates.renew, "demo", limit=LIMIT), "abcdef"))
    assert sum(found) <= LIMIT * (1 + 1e-9)
    assert max(found) > 0


def test_a_limit_that_lets_nothing_through_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        ledger.rates.renew("demo", "a", 0)
