"""Retries inside a fetch (R-CTL-7): what is retried, how long the waits are, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import ConfigError, InvalidInput, Permanent, QuotaExceeded, Transient
from sealbook.extract.retry import RetryPolicy, with_retries

POLICY = RetryPolicy(tries=4, base_seconds=1.0, cap_seconds=3.0, longest_delay_seconds=60.0)


class Scripted:
    """Work that fails as told, one failure for each try, and then returns how often it was called."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.calls


def retry(
    work: Callable[[], int], policy: RetryPolicy = POLICY, draw: float = 1.0
) -> tuple[int, list[float]]:
    waits: list[float] = []
    return with_retries(work, policy, sleep=waits.append, draw=lambda: draw), waits


def test_work_that_succeeds_is_called_once_and_waits_for_nothing() -> None:
    assert retry(Scripted()) == (1, [])


def test_a_transient_failure_is_tried_again_after_doubling_waits_up_to_the_cap() -> None:
    assert retry(Scripted(Transient("1"), Transient("2"), Transient("3"))) == (4, [1.0, 2.0, 3.0])


def test_the_last_failure_is_raised_when_the_tries_are_used_up() -> None:
    work = Scripted(*(Transient(str(number)) for number in range(1, 9)))
    with pytest.raises(Transient, match=r"\A4\Z"):
        retry(work)
    assert work.calls == POLICY.tries


@pytest.mark.parametrize(
    "failure", [Permanent("no"), ConfigError("no"), ValueError("a bug"), KeyboardInterrupt()], ids=repr
)
def test_whatever_is_not_transient_is_raised_at_once(failure: BaseException) -> None:
    work = Scripted(failure)
    with pytest.raises(type(failure)):
        retry(work)
    assert work.calls == 1


def test_a_delay_that_the_server_asks_for_is_waited_in_full_with_jitter_on_top() -> None:
    assert retry(Scripted(QuotaExceeded("q", retry_after=30.0)), draw=0.5) == (2, [30.5])
    assert retry(Scripted(Transient("t", retry_after=30.0)), draw=0.5) == (2, [30.5])


def test_a_quota_failure_without_a_delay_backs_off_like_any_other() -> None:
    assert retry(Scripted(QuotaExceeded("q"), QuotaExceeded("q"))) == (3, [1.0, 2.0])


def test_a_delay_too_long_to_hold_a_thread_for_is_handed_on_with_its_length() -> None:
    work = Scripted(QuotaExceeded("daily quota", retry_after=8 * 3600.0))
    with pytest.raises(QuotaExceeded) as caught:
        retry(work)
    assert (work.calls, caught.value.retry_after) == (1, 8 * 3600.0)


def test_each_retry_is_reported_with_its_failure_and_wait() -> None:
    failure, told = Transient("once"), []
    with_retries(
        Scripted(failure),
        POLICY,
        on_retry=lambda *retry: told.append(retry),
        sleep=lambda _: None,
        draw=lambda: 0.25,
    )
    assert told == [(failure, 0.25)]


@given(tried=st.integers(1, 10_000), draw=st.floats(0, 1))
def test_the_jitter_is_full_and_never_above_the_cap(tried: int, draw: float) -> None:
    policy = RetryPolicy(tries=10_001, base_seconds=0.5, cap_seconds=60.0)
    wait = policy.wait(Transient("t"), tried, draw)
    assert wait == pytest.approx(draw * min(60.0, 0.5 * 2.0 ** min(tried - 1, 40)))


@pytest.mark.parametrize(
    "fields",
    [{"tries": 0}, {"base_seconds": -1}, {"cap_seconds": -1}, {"longest_delay_seconds": -1}],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(fields))):
        RetryPolicy(**fields)
