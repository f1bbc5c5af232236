"""Requests per second are limited by account and by source, in every window of time."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.extract.limits import RequestLimiter


class FakeTime:
    """A clock that only a sleep moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        with self._lock:
            self.now += seconds


def sent_at(limiter: RequestLimiter, fake: FakeTime, customers: list[str]) -> list[float]:
    times = []
    for customer_id in customers:
        limiter.acquire(customer_id)
        times.append(fake.now - 1_000_000.0)
    return times


def limiter(fake: FakeTime, total: float | None, each: float | None, processes: int = 1) -> RequestLimiter:
    return RequestLimiter(
        requests_per_second=total,
        requests_per_second_per_customer=each,
        processes=processes,
        clock=fake.clock,
        sleep=fake.sleep,
    )


def assert_within(times: list[float], per_second: float) -> None:
    """No window holds more than what may be saved up and what its length allows."""
    burst = max(1.0, per_second / 10)
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            allowed = burst + per_second * (times[last] - start)
            assert last - first + 1 <= allowed + 1e-3  # rounding


def test_without_limits_nothing_waits() -> None:
    fake = FakeTime()
    assert sent_at(limiter(fake, None, None), fake, ["a"] * 1000) == [0.0] * 1000


def test_the_source_is_limited_over_all_accounts() -> None:
    fake = FakeTime()
    assert sent_at(limiter(fake, 2.0, None), fake, list("abcd")) == pytest.approx([0.0, 0.5, 1.0, 1.5])


def test_each_account_is_limited_by_itself() -> None:
    fake = FakeTime()
    assert sent_at(limiter(fake, None, 1.0), fake, list("abab")) == pytest.approx([0.0, 0.0, 1.0, 1.0])


def test_what_is_saved_up_in_idle_time_is_bounded() -> None:
    fake = FakeTime()
    limited = limiter(fake, 20.0, None)
    fake.sleep(3600)
    times = sent_at(limited, fake, ["a"] * 6)
    assert [time - 3600 for time in times] == pytest.approx([0.0, 0.0, 0.05, 0.1, 0.15, 0.2])


def test_processes_share_the_limits_in_equal_parts() -> None:
    fake = FakeTime()
    assert sent_at(limiter(fake, 4.0, None, processes=4), fake, list("abc")) == pytest.approx([0.0, 1.0, 2.0])


@given(
    arrivals=st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 3.0)), max_size=60),
    total=st.floats(0.5, 50.0),
    each=st.floats(0.5, 50.0),
)
def test_both_limits_hold_in_every_window_whatever_the_order_of_arrival(
    arrivals: list[tuple[str, float]], total: float, each: float
) -> None:
    fake = FakeTime()
    limited = limiter(fake, total, each)
    by_customer: dict[str, list[float]] = defaultdict(list)
    all_times = []
    for customer_id, pause in arrivals:
        fake.now += pause
        limited.acquire(customer_id)
        by_customer[customer_id].append(fake.now)
        all_times.append(fake.now)
    assert_within(all_times, total)
    for times in by_customer.values():
        assert_within(times, each)


class SwitchingTime(FakeTime):
    """A clock that lets another thread go first whenever it is read, and knows what each thread read last."""

    def __init__(self) -> None:
        super().__init__()
        self.read = threading.local()

    def clock(self) -> float:
        self.read.last = super().clock()
        time.sleep(0)
        return float(self.read.last)


def test_threads_that_share_a_limiter_get_no_more_than_it_allows_in_any_window() -> None:
    fake = SwitchingTime()
    limited = limiter(fake, 5.0, 2.0)
    granted: list[tuple[float, str]] = []

    def ask(customer_id: str) -> None:
        for _ in range(50):
            limited.acquire(customer_id)
            granted.append((fake.read.last, customer_id))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, "aabbccdd"))
    assert len(granted) == 400
    assert_within(sorted(at for at, _ in granted), 5.0)
    for customer_id in "abcd":
        assert_within(sorted(at for at, of in granted if of == customer_id), 2.0)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_that_lets_nothing_through_is_refused(limit: float) -> None:
    with pytest.raises(InvalidInput, match="requests_per_second"):
        RequestLimiter(requests_per_second=limit)
    with pytest.raises(InvalidInput, match="requests_per_second_per_customer"):
        RequestLimiter(requests_per_second_per_customer=limit)


def test_a_number_of_processes_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="processes"):
        RequestLimiter(processes=0)
