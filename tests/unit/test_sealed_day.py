"""R-PST-8: when a day is, in the time zone of its account, and whether it was over when it was fetched."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model.freshness import Window
from sealbook.model.sealed_day import SealedDay
from sealbook.model.universe import Account, EarlierZone

DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("zone", "day", "begins", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00", 23),
        ("Europe/Berlin", date(2026, 10, 25), "2026-10-24T22:00", 25),
        ("America/New_York", date(2026, 3, 8), "2026-03-08T05:00", 23),
        ("America/New_York", date(2026, 11, 1), "2026-11-01T04:00", 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), "2026-04-04T13:00", 24.5),
        ("Pacific/Kiritimati", date(2026, 1, 1), "2025-12-31T10:00", 24),
        ("Etc/GMT+12", date(2026, 1, 1), "2026-01-01T12:00", 24),
        ("Pacific/Apia", date(2011, 12, 29), "2011-12-29T10:00", 24),
        ("Pacific/Apia", date(2011, 12, 31), "2011-12-30T10:00", 24),
    ],
)
def test_windows_where_clocks_are_set_and_beyond_twelve_hours(
    zone: str, day: date, begins: str, hours: float
) -> None:
    window = Window.of(day, ZoneInfo(zone))
    assert window.begins_at == datetime.fromisoformat(begins).replace(tzinfo=UTC)
    assert window.ends_at - window.begins_at == timedelta(hours=hours)


ZONES = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
DAYS = st.dates(date(1990, 1, 1), date(2035, 1, 1))


@given(ZONES, DAYS, st.timedeltas(-3 * DAY, 3 * DAY))
def test_days_of_a_zone_follow_each_other_and_a_seal_says_what_was_sealed(
    zone: ZoneInfo, day: date, early: timedelta
) -> None:
    window = Window.of(day, zone)
    assert Window.of(day + DAY, zone).begins_at == window.ends_at
    sealed = SealedDay.of(Account("a", zone), day, window.ends_at + early)
    assert sealed.provisional is (early < timedelta())
    assert SealedDay.from_fields(sealed.to_fields()) == sealed


def test_a_day_is_over_at_the_very_end() -> None:
    account = Account("a", ZoneInfo("Asia/Tokyo"))
    end = account.window(date(2026, 1, 1)).ends_at
    assert SealedDay.of(account, date(2026, 1, 1), end - MOMENT).provisional
    assert not SealedDay.of(account, date(2026, 1, 1), end).provisional


def test_the_zone_of_a_day_is_the_one_that_held_then() -> None:
    account = Account("a", UTC, earlier=(EarlierZone(date(2026, 1, 3), ZoneInfo("Asia/Tokyo")),))
    zones = [SealedDay.of(account, date(2026, 1, day), datetime.now(UTC)).time_zone for day in (2, 3)]
    assert zones == ["Asia/Tokyo", "UTC"]


GOOD = SealedDay.of(Account("a"), date(2026, 1, 1), datetime(2026, 1, 2, tzinfo=UTC)).to_fields()


@pytest.mark.parametrize(
    "other",
    [
        {"time_zone": 1},
        {"provisional": "no"},
        {"day_begins_at": "yesterday"},
        {"day_ends_at": None},
        {"day_ends_at": "0001-01-01T00:00:00+14:00"},
    ],
)
def test_fields_of_another_tool_are_no_day(other: dict[str, object]) -> None:
    assert SealedDay.from_fields(GOOD) is not None
    assert SealedDay.from_fields({**GOOD, **other}) is None
    assert SealedDay.from_fields({}) is None
