"""R-PST-8: due points, the deadline that counts, and when a day is over, in any time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.freshness import Deadline, Freshness, day_end, last_ended, later

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
INSTANT = timedelta(microseconds=1)
END = datetime(2026, 1, 2, tzinfo=UTC)
POLICY = Freshness((6 * HOUR, 3 * DAY, 7 * DAY), max_lag=12 * HOUR)

# How long after the end of the day it is, and the due point whose deadline counts then.
DEADLINES: list[tuple[timedelta, timedelta | None]] = [
    (-DAY, None),
    (timedelta(), None),
    (6 * HOUR, None),
    (18 * HOUR - INSTANT, None),
    (18 * HOUR, 6 * HOUR),
    (3 * DAY, 6 * HOUR),
    (3 * DAY + 12 * HOUR - INSTANT, 6 * HOUR),
    (3 * DAY + 12 * HOUR, 3 * DAY),
    (7 * DAY + 12 * HOUR - INSTANT, 3 * DAY),
    (7 * DAY + 12 * HOUR, 7 * DAY),
    (900 * DAY, 7 * DAY),
]


@pytest.mark.parametrize(("passed", "point"), DEADLINES)
def test_the_deadline_that_counts_is_the_latest_that_has_passed(
    passed: timedelta, point: timedelta | None
) -> None:
    expected = None if point is None else Deadline(END + point, END + point + 12 * HOUR)
    assert POLICY.deadline(END, END + passed) == expected


@pytest.mark.parametrize(
    ("after", "point"),
    [
        (-DAY, 6 * HOUR),
        (6 * HOUR - INSTANT, 6 * HOUR),
        (6 * HOUR, 3 * DAY),
        (5 * DAY, 7 * DAY),
        (7 * DAY, None),
    ],
)
def test_the_next_due_point(after: timedelta, point: timedelta | None) -> None:
    assert POLICY.next_point(END, END + after) == (None if point is None else END + point)


def test_a_day_is_settled_by_a_materialization_at_the_last_due_point_or_later() -> None:
    assert not POLICY.is_settled(END, END + 7 * DAY - INSTANT)
    assert POLICY.is_settled(END, END + 7 * DAY)


@pytest.mark.parametrize(
    ("due", "max_lag", "says"),
    [
        ((), timedelta(), "at least one point"),
        ((3 * DAY, 6 * HOUR), timedelta(), "not in ascending order"),
        ((DAY, DAY), timedelta(), "not in ascending order"),
        ((-HOUR, DAY), timedelta(), "no negative span"),
        ((DAY,), -HOUR, "no negative span"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    due: tuple[timedelta, ...], max_lag: timedelta, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        Freshness(due, max_lag)


# A zone, a day, and when that day is over, in UTC.
ENDS: list[tuple[str, str, str]] = [
    ("UTC", "2026-01-01", "2026-01-02T00:00"),
    ("America/New_York", "2026-01-01", "2026-01-02T05:00"),
    ("America/New_York", "2026-03-07", "2026-03-08T05:00"),
    ("America/New_York", "2026-03-08", "2026-03-09T04:00"),  # of 23 hours: clocks go forward
    ("America/New_York", "2026-11-01", "2026-11-02T05:00"),  # of 25 hours: clocks go back
    ("Europe/Berlin", "2026-03-29", "2026-03-29T22:00"),
    ("Europe/Berlin", "2026-10-25", "2026-10-25T23:00"),
    ("Asia/Kolkata", "2026-01-01", "2026-01-01T18:30"),
    ("Pacific/Kiritimati", "2026-01-01", "2026-01-01T10:00"),
    ("Pacific/Niue", "2026-01-01", "2026-01-02T11:00"),
    ("America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00"),  # the next one begins at 01:00
    ("Africa/Cairo", "2024-04-25", "2024-04-25T22:00"),  # and here
    ("America/Havana", "2025-11-01", "2025-11-02T04:00"),  # the next one has two midnights: the first
    ("America/St_Johns", "2010-11-06", "2010-11-07T02:30"),  # at 00:01 it was 23:01 of this day once more
    ("Pacific/Apia", "2011-12-29", "2011-12-30T10:00"),  # the next one was left out
    ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00"),
]


@pytest.mark.parametrize(("zone", "day", "end"), ENDS)
def test_when_a_day_is_over(zone: str, day: str, end: str) -> None:
    expected = datetime.fromisoformat(end).replace(tzinfo=UTC)
    assert day_end(date.fromisoformat(day), ZoneInfo(zone)) == expected
    assert last_ended(expected - INSTANT, ZoneInfo(zone)) < date.fromisoformat(day)
    for passed in (timedelta(), HOUR / 4, HOUR, 2 * HOUR):
        assert last_ended(expected + passed, ZoneInfo(zone)) >= date.fromisoformat(day)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Niue"])
def test_the_first_and_the_last_day_of_the_calendar_end(zone: str) -> None:
    first, last = day_end(date.min, ZoneInfo(zone)), day_end(date.max, ZoneInfo(zone))
    assert first < END < last
    assert POLICY.deadline(last, END) is None
    assert POLICY.next_point(last, END) == last == later(last, DAY)
    assert not POLICY.is_settled(last, END)
    assert POLICY.is_settled(first, END)


ZONES = st.sampled_from(sorted({zone for zone, _, _ in ENDS} | {"Pacific/Kwajalein", "America/Toronto"}))
MOMENTS = st.builds(
    datetime.__add__,
    st.sampled_from([datetime.fromisoformat(end).replace(tzinfo=UTC) for _, _, end in ENDS]),
    st.timedeltas(-2 * DAY, 2 * DAY) | st.timedeltas(-40_000 * DAY, 40_000 * DAY),
)


@given(ZONES.map(ZoneInfo), MOMENTS)
def test_the_last_day_that_is_over_is_over_and_the_next_is_not(zone: tzinfo, now: datetime) -> None:
    day = last_ended(now, zone)
    assert day_end(day, zone) <= now < day_end(day + DAY, zone)
