"""R-PST-3, R-PST-4, R-PST-8: every reason that holds, the main one first, and since when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model.freshness import Deadline, Freshness
from sealbook.model.staleness import CodeInForce, StaleCode, StaleReason, stale_reasons
from tests.support.ledger import KEY
from tests.support.status import DAY, HOUR, START

POLICY = Freshness((6 * HOUR, 3 * DAY), max_lag=HOUR)
INSTANT = timedelta(microseconds=1)
UP = [replace(KEY, query_name=name) for name in ("a", "b", "c")]
IN_FORCE = CodeInForce("two", START + 5 * HOUR)


def codes(reasons: list[StaleReason]) -> list[StaleCode]:
    return [reason.code for reason in reasons]


def test_without_policy_upstreams_and_contract_nothing_is_stale() -> None:
    assert stale_reasons(START, None) == []


# When it was materialized and when that is asked, after the end of the day; since when it is stale then.
POLICIES: dict[str, tuple[timedelta, timedelta, timedelta | None]] = {
    "before the first point, its deadline not passed": (2 * HOUR, 7 * HOUR - INSTANT, None),
    "before the first point, its deadline passed": (2 * HOUR, 7 * HOUR, 7 * HOUR),
    "before the day was over": (-3 * HOUR, 8 * HOUR, 7 * HOUR),
    "at the first point": (6 * HOUR, DAY, None),
    "an instant before the first point": (6 * HOUR - INSTANT, DAY, 7 * HOUR),
    "due point passed, its deadline not": (DAY, 3 * DAY, None),
    "due point passed, and its deadline": (DAY, 3 * DAY + HOUR, 3 * DAY + HOUR),
    "late at the first point, due once more": (2 * HOUR, 3 * DAY + HOUR - INSTANT, 7 * HOUR),
    "settled": (3 * DAY, 900 * DAY, None),
    "settled late": (9 * DAY, 900 * DAY, None),
}


@pytest.mark.parametrize("case", POLICIES)
def test_the_freshness_policy(case: str) -> None:
    made, asked, since = POLICIES[case]
    reasons = stale_reasons(START + made, None, deadline=POLICY.deadline(START, START + asked))
    expected = [] if since is None else [StaleReason(StaleCode.FRESHNESS_POLICY, START + since)]
    assert reasons == expected


def test_an_upstream_that_was_materialized_later_is_a_reason_since_the_earliest() -> None:
    made = [(UP[2], START + 3 * HOUR), (UP[0], START), (UP[1], START + 2 * HOUR)]
    assert stale_reasons(START + HOUR, None, upstreams=made) == [
        StaleReason(StaleCode.UPSTREAM_CHANGED, START + 2 * HOUR, (UP[1], UP[2]))
    ]


def test_equal_timestamps_are_fresh() -> None:
    assert stale_reasons(START, None, upstreams=[(UP[0], START)]) == []
    assert stale_reasons(START, None, deadline=Deadline(START, START + HOUR)) == []


def test_an_upstream_that_was_never_materialized_is_unknown_not_fresh() -> None:
    assert stale_reasons(START, None, upstreams=[(UP[1], None), (UP[0], None), (UP[2], START)]) == [
        StaleReason(StaleCode.UPSTREAM_UNKNOWN, START, (UP[0], UP[1]))
    ]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("two", None),
        ("one", StaleReason(StaleCode.CODE_CHANGED, IN_FORCE.since)),
        (None, StaleReason(StaleCode.CODE_UNKNOWN, START)),
    ],
)
def test_the_contract_in_force(version: str | None, reason: StaleReason | None) -> None:
    assert stale_reasons(START, version, code=IN_FORCE) == ([] if reason is None else [reason])


def test_all_reasons_are_told_in_their_order() -> None:
    reasons = stale_reasons(
        START,
        "one",
        deadline=Deadline(START + HOUR, START + 2 * HOUR),
        upstreams=[(UP[0], None), (UP[1], START + HOUR)],
        code=IN_FORCE,
    )
    assert codes(reasons) == [
        StaleCode.FRESHNESS_POLICY,
        StaleCode.UPSTREAM_CHANGED,
        StaleCode.CODE_CHANGED,
        StaleCode.UPSTREAM_UNKNOWN,
    ]
    assert codes(stale_reasons(START, None, upstreams=[(UP[0], None)], code=IN_FORCE)) == [
        StaleCode.UPSTREAM_UNKNOWN,
        StaleCode.CODE_UNKNOWN,
    ]


MOMENTS = st.integers(0, 5).map(lambda hours: START + hours * HOUR)


@given(
    MOMENTS,
    st.sampled_from(["one", "two"]),
    st.none() | MOMENTS.map(lambda at: Deadline(at, at + HOUR)),
    st.lists(st.tuples(st.sampled_from(UP), MOMENTS), max_size=3),
)
def test_a_materialization_later_than_all_that_is_known_clears_every_reason(
    made: datetime, version: str, deadline: Deadline | None, upstreams: list[tuple[object, datetime]]
) -> None:
    held = {"deadline": deadline, "upstreams": upstreams, "code": IN_FORCE}
    reasons = stale_reasons(made, version, **held)  # type: ignore[arg-type]
    assert codes(reasons) == sorted(codes(reasons), key=list(StaleCode).index)
    assert stale_reasons(START + 6 * HOUR, "two", **held) == []  # type: ignore[arg-type]
