"""Which partitions an extraction is of, and how they are dealt to tasks."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError, InvalidInput
from sealbook.extract.plan import deal, plan_extraction
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
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


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 9))
def test_dealing_is_complete_balanced_and_gives_every_account_to_all_tasks(
    sizes: list[int], tasks: int
) -> None:
    keys = [
        PartitionKey("demo", f"c{account}", "campaign_daily", date.fromordinal(738_000 + day))
        for account, size in enumerate(sizes)
        for day in range(size)
    ]

    dealt = deal(keys, tasks)

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

    for task in deal(keys, 2):
        first_round = Counter(key.customer_id for key in task[:3])
        assert set(first_round.values()) == {1}
