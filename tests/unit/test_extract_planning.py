"""Which partitions an extraction is of, and how they are dealt to tasks."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError, InvalidInput
from sealbook.extract.planning import plan_keys, spread
from sealbook.model import PartitionKey
from tests.support.extraction import demo_queries

FIRST, LAST = date(2026, 2, 27), date(2026, 3, 1)
SOURCES = {
    "demo": SourceSettings("demo", ("a", "b"), demo_queries(), {}),
    "other": SourceSettings("other", ("b", "c"), demo_queries(), {}),
}
QUERIES = len(demo_queries())


def test_plan_is_customers_by_queries_by_days_of_every_source() -> None:
    plan = plan_keys(SOURCES, FIRST, LAST)

    assert {source: len(keys) for source, keys in plan.items()} == {
        "demo": 2 * QUERIES * 3,
        "other": 2 * QUERIES * 3,
    }
    assert len({key for keys in plan.values() for key in keys}) == 4 * QUERIES * 3
    assert {key.logical_date for key in plan["demo"]} == {FIRST, date(2026, 2, 28), LAST}


def test_plan_keeps_to_what_is_named_and_drops_sources_that_have_none_of_it() -> None:
    assert plan_keys(SOURCES, LAST, LAST, customers=["a"], queries=["campaign_daily"]) == {
        "demo": [PartitionKey("demo", "a", "campaign_daily", LAST)]
    }
    assert list(plan_keys(SOURCES, LAST, LAST, customers=["b"])) == ["demo", "other"]
    assert list(plan_keys(SOURCES, LAST, LAST, source="other")) == ["other"]


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"source": "nowhere"}, "source nowhere"),
        ({"customers": ["a", "zz"]}, "customer zz"),
        ({"source": "demo", "customers": ["c"]}, "customer c"),
        ({"queries": ["no_such_query"]}, "query no_such_query"),
    ],
)
def test_what_is_not_configured_is_refused_by_name(wanted: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refusal:
        plan_keys(SOURCES, FIRST, LAST, **wanted)  # type: ignore[arg-type]
    assert "Configured are" in str(refusal.value.remedy)


def test_days_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2026-03-01"):
        plan_keys(SOURCES, LAST, FIRST)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 9))
def test_spread_is_complete_balanced_and_gives_every_account_to_all_tasks(
    sizes: list[int], tasks: int
) -> None:
    keys = [
        PartitionKey("demo", f"c{account}", "campaign_daily", date.fromordinal(738_000 + day))
        for account, size in enumerate(sizes)
        for day in range(size)
    ]

    dealt = spread(keys, tasks)

    assert sorted(key for task in dealt for key in task) == sorted(keys)
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert len(dealt) == min(tasks, len(keys))
    for account, size in enumerate(sizes):
        shares = [sum(key.customer_id == f"c{account}" for key in task) for task in dealt]
        assert max(shares) <= -(-size // tasks)


def test_accounts_take_turns_within_a_task() -> None:
    keys = [
        PartitionKey("demo", account, "campaign_daily", date(2026, 1, day))
        for account in "abc"
        for day in range(1, 11)
    ]

    for task in spread(keys, 2):
        first_round = Counter(key.customer_id for key in task[:3])
        assert set(first_round.values()) == {1}
