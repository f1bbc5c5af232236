"""Due points that are learned from drift: capped, ascending, and fewer with more tolerance."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.auto_due import (
    FIRST_DUE,
    LEAST_COMPARED,
    USUAL_DUE,
    AgeDrift,
    AutoDue,
    by_age,
    learn_due,
)
from sealbook.model.drift import AGES, DriftSum
from sealbook.model.freshness import Freshness

DAY = timedelta(days=1)
NOTHING: dict[timedelta, AgeDrift] = {}
observations = st.dictionaries(
    st.sampled_from(AGES),
    st.builds(AgeDrift, compared=st.integers(0, 3 * LEAST_COMPARED), change=st.floats(0, 1)),
)
autos = st.builds(
    AutoDue,
    within=st.integers(6, 120 * 24).map(lambda hours: timedelta(hours=hours)),
    at_most=st.integers(1, 12),
    tolerance=st.floats(0, 1, exclude_max=True),
)


def known(**changes: float) -> dict[timedelta, AgeDrift]:
    """Return changes by age, of days; of the other ages it is known that nothing changes."""
    found = dict.fromkeys(AGES, AgeDrift(LEAST_COMPARED, 0.0))
    return found | {int(name[1:]) * DAY: AgeDrift(LEAST_COMPARED, change) for name, change in changes.items()}


def days(auto: AutoDue, observed: dict[timedelta, AgeDrift]) -> list[int]:
    """Return the points after the first, in days."""
    first, *others = learn_due(auto, observed).due
    assert first == FIRST_DUE
    return [each // DAY for each in others]


def test_with_nothing_known_the_usual_points_hold_within_the_caps() -> None:
    assert learn_due(AutoDue(), NOTHING).due == USUAL_DUE
    assert days(AutoDue(within=14 * DAY), NOTHING) == [3, 7]
    assert days(AutoDue(at_most=2), NOTHING) == [3]
    assert learn_due(AutoDue(at_most=1), NOTHING).due == (FIRST_DUE,)


def test_points_are_where_days_still_changed() -> None:
    assert days(AutoDue(tolerance=0.01), known()) == []
    assert days(AutoDue(tolerance=0.01), known(d1=0.2, d7=0.011, d14=0.01)) == [1, 7]


def test_small_changes_add_up_until_they_are_a_point() -> None:
    assert days(AutoDue(tolerance=0.01), known(d1=0.006, d2=0.006, d3=0.006, d30=0.006)) == [2, 30]


def test_too_many_points_lose_those_of_the_least_change() -> None:
    found = known(d1=0.5, d3=0.02, d7=0.3, d30=0.4)
    assert days(AutoDue(at_most=4), found) == [1, 7, 30]
    assert days(AutoDue(at_most=2), found) == [1]


def test_an_age_of_which_too_little_is_known_keeps_its_usual_point() -> None:
    few = known(d7=0.0) | {30 * DAY: AgeDrift(LEAST_COMPARED - 1, 0.0)}
    assert days(AutoDue(), few) == [30]


def test_reasons_name_each_age_that_was_looked_at() -> None:
    found = learn_due(AutoDue(within=7 * DAY, at_most=2, tolerance=0.01), known(d1=0.5, d3=0.2, d7=0.001))
    assert found.reasons == (
        "1d: changed by 50.00% since the point before, 20 compared",
        "2d: no point: changed by 0.00% since the point before, 20 compared",
        "3d: no point, as 2 are the most: changed by 20.00% since the point before, 20 compared",
        "7d: no point: changed by 0.10% since the point before, 20 compared",
    )


@given(autos, observations)
def test_points_are_ascending_and_within_the_caps(auto: AutoDue, observed: dict[timedelta, AgeDrift]) -> None:
    found = learn_due(auto, observed)
    assert list(found.due) == sorted(set(found.due))
    assert found.due[0] == FIRST_DUE
    assert found.due[-1] <= auto.within
    assert len(found.due) <= auto.at_most
    assert Freshness(found.due).due == found.due


@given(autos, observations)
def test_points_are_the_same_in_whatever_order_it_was_observed(
    auto: AutoDue, observed: dict[timedelta, AgeDrift]
) -> None:
    assert learn_due(auto, dict(reversed(observed.items()))) == learn_due(auto, observed)


@given(autos, observations, st.floats(0, 1, exclude_max=True))
def test_more_tolerance_never_gives_more_points(
    auto: AutoDue, observed: dict[timedelta, AgeDrift], other: float
) -> None:
    low, high = (
        AutoDue(auto.within, auto.at_most, tolerance) for tolerance in sorted((auto.tolerance, other))
    )
    assert len(learn_due(high, observed).due) <= len(learn_due(low, observed).due)


@pytest.mark.parametrize(
    "wrong", [{"within": timedelta(hours=5)}, {"at_most": 0}, {"tolerance": -0.1}, {"tolerance": 1.0}]
)
def test_what_cannot_be_learned_by_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        AutoDue(**wrong)  # type: ignore[arg-type]


def test_customers_add_up_by_what_was_compared() -> None:
    def of(compared: int, change: float, age: timedelta = DAY) -> DriftSum:
        return DriftSum("demo", "q", "c", age, compared + 5, compared, 0, 0, 0, 0, 0, change)

    found = by_age([of(30, 0.1), of(10, 0.5), of(0, 0.0, 3 * DAY)])
    assert found == {DAY: AgeDrift(40, pytest.approx(0.2)), 3 * DAY: AgeDrift(0, 0.0)}  # type: ignore[arg-type]
