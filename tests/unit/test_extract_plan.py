"""Which partitions an extraction is of, and how they are dealt to tasks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError, InvalidInput
from sealbook.extract.plan import NotBegun, deal, plan_extraction
from sealbook.extract.ranges import singles
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from sealbook.model.universe import Account
from tests.support.extraction import demo_queries

FIRST, LAST = date(2026, 2, 27), date(2026, 3, 1)
SOURCES = {
    "demo": SourceSettings("demo", ("a", "b"), demo_queries(), {}),
    "other": SourceSettings("other", ("b", "c"), demo_queries(), {}),
}
QUERIES = len(demo_queries())


def test_plan_is_customers_by_queries_by_days_of_every_source() -> None:
    plan = plan_extraction(SOURCES, Selection(since=FIRST, until=LAST)).keys

    assert {source: len(keys) for source, keys in plan.items()} == {
        "demo": 2 * QUERIES * 3,
        "other": 2 * QUERIES * 3,
    }
    assert len({key for keys in plan.values() for key in keys}) == 4 * QUERIES * 3
    assert {key.logical_date for key in plan["demo"]} == {FIRST, date(2026, 2, 28), LAST}


def test_plan_keeps_to_what_is_named_and_drops_sources_that_have_none_of_it() -> None:
    one = PartitionKey("demo", "a", "campaign_daily", LAST)
    assert planned(customers=["a"], queries=["campaign_daily"]) == {"demo": [one]}
    assert list(planned(customers=["b"])) == ["demo", "other"]
    assert list(planned(source="other")) == ["other"]
    assert plan_extraction(SOURCES, Selection(keys=[one])).keys == {"demo": [one]}


def planned(**chosen: Any) -> dict[str, list[PartitionKey]]:
    return plan_extraction(SOURCES, Selection(**chosen, since=LAST, until=LAST)).keys


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"source": "nowhere"}, "source nowhere"),
        ({"customers": ["a", "zz"]}, "customer zz"),
        ({"source": "demo", "customers": ["c"]}, "customer c"),
        ({"queries": ["no_such_query"]}, "query no_such_query"),
        ({"keys": [PartitionKey("demo", "zz", "campaign_daily", LAST)]}, "customer zz"),
    ],
)
def test_what_is_not_configured_is_refused_by_name(wanted: dict[str, Any], named: str) -> None:
    days: dict[str, Any] = {} if "keys" in wanted else {"since": FIRST, "until": LAST}
    with pytest.raises(ConfigError, match=named) as refusal:
        plan_extraction(SOURCES, Selection(**wanted, **days))
    assert "Configured are" in str(refusal.value.remedy)


@pytest.mark.parametrize("days", [{}, {"since": FIRST}, {"until": LAST}])
def test_days_must_be_said(days: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="since and until"):
        plan_extraction(SOURCES, Selection(**days))


ACCOUNTS = {
    "early": Account("early", last_day=date(2026, 2, 27)),
    "late": Account("late", first_day=date(2026, 2, 28)),
    "gone": Account("gone", last_day=date(2020, 1, 1)),
}
BOUNDED = {
    "demo": SourceSettings("demo", ("always", "early", "late", "gone"), demo_queries(), {}, accounts=ACCOUNTS)
}


def test_days_that_an_account_does_not_have_are_left_out_and_counted() -> None:
    """R-PST-6."""
    plan = plan_extraction(BOUNDED, Selection(queries="campaign_daily", since=FIRST, until=LAST))
    planned = {(key.customer_id, key.logical_date.day) for key in plan.keys["demo"]}
    assert planned == {
        ("always", 27),
        ("always", 28),
        ("always", 1),
        ("early", 27),
        ("late", 28),
        ("late", 1),
    }
    assert (len(plan), plan.left_out) == (6, 6)
    assert plan.days == (FIRST, LAST)
    assert plan_extraction(SOURCES, Selection(since=FIRST, until=LAST)).left_out == 0


def test_a_span_of_which_no_account_has_a_day_is_refused() -> None:
    with pytest.raises(ConfigError, match="no account that is chosen has a day of") as refusal:
        plan_extraction(BOUNDED, Selection(customers="gone", since=FIRST, until=LAST))
    assert "first_day and last_day" in str(refusal.value.remedy)


@pytest.mark.parametrize(
    ("customer_id", "day", "has"),
    [("early", LAST, "… … 2026-02-27"), ("late", FIRST, "2026-02-28 …"), ("gone", LAST, "… … 2020-01-01")],
)
def test_a_key_of_a_day_that_its_account_does_not_have_is_refused(
    customer_id: str, day: date, has: str
) -> None:
    key = PartitionKey("demo", customer_id, "campaign_daily", day)
    with pytest.raises(ConfigError, match=f"{key}: the account has no such day, but {has}$"):
        plan_extraction(BOUNDED, Selection(keys=[key]))


def test_a_key_with_a_customer_of_another_source_is_refused() -> None:
    keys = [
        PartitionKey("demo", "c", "campaign_daily", LAST),
        PartitionKey("other", "c", "device_daily", LAST),
    ]
    with pytest.raises(ConfigError, match="source demo has no such customer"):
        plan_extraction(SOURCES, Selection(keys=keys))


NEW_YORK, KIRITIMATI = ZoneInfo("America/New_York"), ZoneInfo("Pacific/Kiritimati")
ZONES = {each.customer_id: each for each in (Account("west", NEW_YORK), Account("east", KIRITIMATI))}
ABROAD = {"demo": SourceSettings("demo", ("utc", *ZONES), demo_queries(), {}, accounts=ZONES)}
NOON, NIGHT = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("customers", "until", "now", "expected"),
    [
        (["utc"], date(2026, 3, 1), NOON, None),
        (["utc"], date(2026, 3, 2), NOON, NotBegun(date(2026, 3, 1), date(2026, 3, 2), "UTC")),
        (["east"], date(2026, 3, 2), NOON, None),
        (
            ["east"],
            date(2026, 3, 3),
            NOON,
            NotBegun(date(2026, 3, 2), date(2026, 3, 3), "Pacific/Kiritimati"),
        ),
        (["utc", "east"], date(2026, 3, 2), NIGHT, None),
        (
            ["utc", "west", "east"],
            date(2026, 3, 2),
            NIGHT,
            NotBegun(date(2026, 3, 1), date(2026, 3, 2), "America/New_York"),
        ),
    ],
)
def test_a_day_begins_in_the_time_zone_of_its_account(
    customers: list[str], until: date, now: datetime, expected: NotBegun | None
) -> None:
    plan = plan_extraction(ABROAD, Selection(customers=customers, since=FIRST, until=until))
    assert plan.not_begun(ABROAD, now) == expected
    keys = [PartitionKey("demo", each, "campaign_daily", until) for each in customers]
    assert plan_extraction(ABROAD, Selection(keys=keys)).not_begun(ABROAD, now) == expected


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 9))
def test_dealing_is_complete_balanced_and_gives_every_account_to_all_tasks(
    sizes: list[int], tasks: int
) -> None:
    keys = [
        PartitionKey("demo", f"c{account}", "campaign_daily", date.fromordinal(738_000 + day))
        for account, size in enumerate(sizes)
        for day in range(size)
    ]

    dealt = deal(singles(keys), tasks)

    assert sorted(days for task in dealt for days in task) == sorted(singles(keys))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert len(dealt) == min(tasks, len(keys))
    for account, size in enumerate(sizes):
        shares = [sum(key.customer_id == f"c{account}" for (key,) in task) for task in dealt]
        assert max(shares) <= -(-size // tasks)


def test_accounts_take_turns_within_a_task() -> None:
    ranges = [
        tuple(PartitionKey("demo", account, query, date(2026, 1, day)) for day in range(1, days))
        for account, days in (("a", 31), ("b", 2), ("c", 9))
        for query in ("campaign_daily", "ad_group_daily", "keyword_daily", "search_daily")
    ]

    for task in deal(ranges, 2):
        first_round = Counter(days[0].customer_id for days in task[:3])
        assert set(first_round.values()) == {1}
