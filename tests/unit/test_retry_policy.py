"""R-CTL-2, R-CTL-5, R-CTL-7: what becomes of a failure, as a table of cases under a fixed clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.failures import ErrorClass
from sealbook.model.retry import (
    Cause,
    Decision,
    Failing,
    Jitter,
    Retries,
    RetryPolicies,
    RunNow,
    Stop,
    Stopped,
    Wait,
    decide,
    draw,
)
from tests.support.ledger import KEY, OTHER

FAILED = datetime(2026, 1, 3, 12, tzinfo=UTC)
"""A day and a half after the end of the partition's day."""
PLAIN = Retries(jitter=Jitter.NONE, max_attempts=5, max_age=timedelta(days=2))
ONCE = Failing(KEY, tries=1, cause=Cause.TRANSIENT, at=FAILED, seed="run")

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def outcome(decision: Decision) -> timedelta | Stop | None:
    """Return the wait, or why it is stopped; None if it runs now."""
    match decision:
        case Wait(until=until):
            return until - FAILED
        case Stopped(stop=stop):
            return stop
    return None


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        (ONCE, 5 * MINUTE),
        (replace(ONCE, tries=2), 30 * MINUTE),
        (replace(ONCE, tries=3), 2 * HOUR),
        (replace(ONCE, tries=4), 2 * HOUR),  # the last step repeats
        (replace(ONCE, tries=5), Stop.MAX_ATTEMPTS),
        (replace(ONCE, tries=6), Stop.MAX_ATTEMPTS),  # the bound was lowered since
        (replace(ONCE, cause=Cause.REJECTED), 5 * MINUTE),
        (replace(ONCE, cause=Cause.REJECTED, tries=5), Stop.MAX_ATTEMPTS),
        (replace(ONCE, cause=Cause.PERMANENT), Stop.PERMANENT),
        (replace(ONCE, cause=Cause.PERMANENT, days=7), 5 * MINUTE),  # nobody knows which of them it is
        (replace(ONCE, cause=Cause.PERMANENT, days=7, tries=5), Stop.MAX_ATTEMPTS),
        (replace(ONCE, cause=Cause.PERMANENT, tries=5), Stop.PERMANENT),
        (replace(ONCE, retry_after=600.0), 10 * MINUTE),  # the server asks for more
        (replace(ONCE, retry_after=60.0), 5 * MINUTE),  # and for less than the policy does
        (replace(ONCE, cause=Cause.QUOTA, tries=0, retry_after=3600.0), HOUR),
        (replace(ONCE, cause=Cause.QUOTA, tries=0), 5 * MINUTE),  # the server names no time
        (replace(ONCE, cause=Cause.QUOTA, tries=4, retry_after=60.0), MINUTE),  # its time, not the backoff's
        (replace(ONCE, cause=Cause.QUOTA, tries=5), 5 * MINUTE),  # never ends a partition
        (replace(ONCE, cause=Cause.QUOTA, at=FAILED + 12 * HOUR), 12 * HOUR + 5 * MINUTE),
        (replace(ONCE, at=FAILED + 12 * HOUR - 5 * MINUTE), 12 * HOUR),  # the last moment of max_age
        (replace(ONCE, at=FAILED + 12 * HOUR), Stop.MAX_AGE),
        (replace(ONCE, at=FAILED + 12 * HOUR, ages=False), 12 * HOUR + 5 * MINUTE),  # a load has no age
    ],
)
def test_what_becomes_of_a_failure_when_it_happens(failing: Failing, expected: timedelta | Stop) -> None:
    assert outcome(decide(failing, PLAIN, failing.at)) == expected


@pytest.mark.parametrize(
    ("failing", "since", "expected"),
    [
        (None, 0 * MINUTE, None),
        (ONCE, 4 * MINUTE, 5 * MINUTE),
        (ONCE, 5 * MINUTE, None),
        (replace(ONCE, tries=3), 90 * MINUTE, 2 * HOUR),
        (replace(ONCE, tries=3), 3 * HOUR, None),
        (replace(ONCE, cause=Cause.PERMANENT), 1000 * HOUR, Stop.PERMANENT),
    ],
)
def test_waiting_ends_by_itself_and_a_stop_does_not(
    failing: Failing | None, since: timedelta, expected: timedelta | Stop | None
) -> None:
    assert outcome(decide(failing, PLAIN, FAILED + since)) == expected


@pytest.mark.parametrize(
    ("retries", "shortest", "longest"),
    [
        (replace(PLAIN, jitter=Jitter.FULL), 0 * MINUTE, 5 * MINUTE),
        (replace(PLAIN, jitter=Jitter.EQUAL), 2.5 * MINUTE, 5 * MINUTE),
        (PLAIN, 5 * MINUTE, 5 * MINUTE),
    ],
)
def test_jitter_draws_all_of_a_step_or_its_second_half(
    retries: Retries, shortest: timedelta, longest: timedelta
) -> None:
    assert retries.wait(1, 0.0) == shortest
    assert retries.wait(1, 1.0) == longest


def test_a_draw_is_the_same_whoever_asks_and_another_for_another_partition_try_or_run() -> None:
    draws = [draw(KEY, 1, "a"), draw(OTHER, 1, "a"), draw(KEY, 2, "a"), draw(KEY, 1, "b")]
    assert draws == [draw(KEY, 1, "a"), draw(OTHER, 1, "a"), draw(KEY, 2, "a"), draw(KEY, 1, "b")]
    assert len(set(draws)) == 4


def test_days_that_failed_together_are_ready_together_and_others_are_not() -> None:
    """So a range comes back as few ranges, and not day by day."""
    other_query = replace(KEY, query_name="another")

    def waits(days: int) -> list[Decision]:
        keys = (KEY, OTHER, other_query)
        failing = [replace(ONCE, key=key, days=days) for key in keys]
        return [decide(each, Retries(), FAILED) for each in failing]

    alone, together = waits(1), waits(7)
    assert alone[0] != alone[1]
    assert together[0] == together[1] != together[2]


def test_draws_are_spread_evenly() -> None:
    tenths = [int(draw(KEY, 1, str(seed)) * 10) for seed in range(2_000)]
    assert {tenth: tenths.count(tenth) > 140 for tenth in range(10)} == dict.fromkeys(range(10), True)


def test_the_policy_of_a_query_goes_before_that_of_its_source_and_the_default() -> None:
    source, query = Retries(max_attempts=2), Retries(max_attempts=3)
    policies = RetryPolicies(by_source={"ads": source}, by_query={("ads", "clicks"): query})
    assert policies.of("ads", "clicks") is query
    assert policies.of("ads", "costs") is source
    assert policies.of("other", "clicks") == Retries()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("backoff", ()),
        ("backoff", (5 * MINUTE, 0 * MINUTE)),
        ("max_attempts", 0),
        ("max_age", 0 * MINUTE),
    ],
)
def test_a_policy_that_would_never_wait_or_never_try_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as raised:
        Retries(**{field: value})  # type: ignore[arg-type]
    assert raised.value.field == field


def test_every_class_of_error_is_a_cause() -> None:
    assert {Cause.of(each) for each in ErrorClass} == {*Cause} - {Cause.REJECTED}


def test_a_day_past_the_horizon_is_given_up_at_its_first_failure() -> None:
    """R-CTL-5: no later try can get it, whatever the policy."""
    decided = decide(replace(ONCE, cause=Cause.PAST_HORIZON), Retries(max_attempts=None), FAILED)
    assert isinstance(decided, Stopped)
    assert decided.stop is Stop.PAST_HORIZON
    assert decided.stop.terminal


@given(
    retries=st.builds(
        Retries,
        backoff=st.lists(st.timedeltas(MINUTE, 3 * HOUR), min_size=1, max_size=4).map(tuple),
        jitter=st.sampled_from(Jitter),
        max_attempts=st.none() | st.integers(1, 9),
        max_age=st.none() | st.timedeltas(HOUR, 90 * HOUR),
    ),
    failing=st.builds(
        Failing,
        key=st.just(KEY),
        tries=st.integers(1, 12),
        cause=st.sampled_from(Cause),
        at=st.datetimes(datetime(2026, 1, 2), datetime(2026, 1, 9), timezones=st.just(UTC)),  # noqa: DTZ001
        seed=st.text(max_size=3),
        retry_after=st.none() | st.floats(0, 86_400),
    ),
)
def test_a_wait_is_at_least_what_was_asked_and_at_most_that_or_the_step(
    retries: Retries, failing: Failing
) -> None:
    decision = decide(failing, retries, failing.at)
    asked = timedelta(seconds=failing.retry_after or 0)
    if isinstance(decision, Wait):
        assert asked <= decision.until - failing.at <= max(asked, *retries.backoff)
    assert isinstance(decision, Stopped) == (outcome(decision) in list(Stop))
    if failing.cause is Cause.QUOTA:
        assert isinstance(decision, Wait | RunNow)
