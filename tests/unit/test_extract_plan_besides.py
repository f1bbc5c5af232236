"""R-CTL-4: whoever works by hand leaves out what others hold."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import Conflict
from sealbook.extract.plan import ExtractPlan
from sealbook.model import PartitionKey
from sealbook.model.claims import Lease
from sealbook.model.selection import Selection

DAY = date(2026, 1, 1)
NOW = datetime(2026, 2, 1, tzinfo=UTC)
SPAN = Selection((), "demo", ["a", "b", "c"], ["clicks", "costs"], DAY, DAY + timedelta(days=4))
KEYS = tuple(SPAN.expand())
ELSEWHERE = PartitionKey("demo", "z", "clicks", DAY)


def lease(key: PartitionKey) -> Lease:
    return Lease(key, "ann", NOW, NOW + timedelta(minutes=5))


def expand(plan: ExtractPlan) -> list[PartitionKey]:
    return sorted(key for keys in plan.keys.values() for key in keys)


@pytest.mark.parametrize("part", [SPAN, Selection(keys=KEYS)], ids=["span", "keys"])
@given(taken=st.sets(st.sampled_from(KEYS), max_size=len(KEYS) - 1))
def test_what_is_held_is_left_out_and_nothing_else(part: Selection, taken: set[PartitionKey]) -> None:
    plan = ExtractPlan((part,)).besides([lease(key) for key in sorted({*taken, ELSEWHERE})])

    assert expand(plan) == sorted(set(KEYS) - taken)
    assert len(plan) == len(KEYS) - len(taken), "no piece has what another has"
    assert {each.key for each in plan.held} == taken


def test_a_plan_of_which_little_is_held_stays_short() -> None:
    customers = [f"c{number}" for number in range(1000)]
    many = Selection((), "demo", customers, ["clicks", "costs"], DAY, DAY + timedelta(days=99))
    middle = PartitionKey("demo", "c7", "costs", DAY + timedelta(days=50))

    assert len(ExtractPlan((many,)).besides([lease(middle)]).parts) == 4


def test_where_all_is_held_there_is_nothing_to_do_and_the_error_says_who() -> None:
    with pytest.raises(Conflict, match="30 partitions, by ann") as caught:
        ExtractPlan((SPAN,)).besides([lease(key) for key in KEYS])
    assert caught.value.remedy is not None
    assert "sealbook control leases" in caught.value.remedy
