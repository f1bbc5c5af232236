"""Which partitions: one type for every layer, refused in one place and in the same words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook import Selection
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId, Status

RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
KEY = PartitionKey("demo", "a", "clicks", date(2026, 1, 2))
NAMES = st.sampled_from(["demo", "other", "third"])
DAYS = st.dates(date(2026, 1, 1), date(2026, 1, 5))

SELECTIONS = st.builds(
    lambda source, customers, queries, days, runs, statuses: Selection(
        source=source,
        customers=customers,
        queries=queries,
        since=min(days, default=None),
        until=max(days, default=None) if len(days) > 1 else None,
        runs=runs,
        statuses=statuses,
    ),
    source=st.none() | st.lists(NAMES),
    customers=st.none() | st.lists(st.sampled_from("abc")),
    queries=st.none() | st.lists(NAMES),
    days=st.lists(DAYS, max_size=2),
    runs=st.none() | st.just([RUN]),
    statuses=st.none() | st.lists(st.sampled_from(list(Status))),
)
KEYS = st.builds(PartitionKey, NAMES, st.sampled_from("abc"), NAMES, DAYS)


def test_a_single_name_and_iso_text_will_do() -> None:
    said = Selection(
        source="demo", customers="a", queries="clicks", since="2026-01-01", runs=RUN, statuses="failed"
    )
    assert said == Selection(
        source=["demo"],
        customers=("a",),
        queries={"clicks"},
        since=date(2026, 1, 1),
        runs=[RUN],
        statuses=[Status.FAILED],
    )
    assert said.customers == ("a",)


def test_nothing_said_is_everything_and_an_empty_list_is_nothing() -> None:
    assert Selection().is_everything
    assert Selection().matches(KEY)
    assert not Selection(customers=[]).is_everything
    assert not Selection(customers=[]).matches(KEY)


@given(SELECTIONS, KEYS)
def test_a_key_matches_if_every_filter_lets_it_through(selection: Selection, key: PartitionKey) -> None:
    expected = (
        (selection.source is None or key.source in selection.source)
        and (selection.customers is None or key.customer_id in selection.customers)
        and (selection.queries is None or key.query_name in selection.queries)
        and (selection.since is None or key.logical_date >= selection.since)
        and (selection.until is None or key.logical_date <= selection.until)
    )
    assert selection.matches(key) is expected


@given(SELECTIONS, st.none() | st.lists(st.sampled_from("abc")), st.none() | DAYS, st.none() | DAYS, KEYS)
def test_what_is_narrowed_matches_what_both_match(
    selection: Selection,
    customers: list[str] | None,
    since: date | None,
    until: date | None,
    key: PartitionKey,
) -> None:
    """Also where the two spans have no day in common: then nothing is left, which is no error."""
    narrower = selection.narrowed(customers=customers, since=since, until=until)
    expected = (
        selection.matches(key)
        and (customers is None or key.customer_id in customers)
        and (since is None or key.logical_date >= since)
        and (until is None or key.logical_date <= until)
    )
    assert narrower.matches(key) is expected


@given(SELECTIONS | st.lists(KEYS, min_size=1).map(lambda keys: Selection(keys=keys)))
def test_it_survives_as_json(selection: Selection) -> None:
    assert Selection.from_dict(selection.to_dict()) == selection


@given(SELECTIONS)
def test_what_is_said_in_full_can_be_listed(selection: Selection) -> None:
    said = (selection.source, selection.customers, selection.queries, selection.since, selection.until)
    if None in said:
        with pytest.raises(InvalidInput, match="selection"):
            list(selection.expand())
    else:
        keys = list(selection.expand())
        assert len(set(keys)) == len(keys)
        assert all(map(selection.matches, keys))
    assert list(Selection(keys=[KEY]).expand()) == [KEY]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"since": "2026-01-02", "until": "2026-01-01"}, "ends before it begins"),
        ({"keys": [KEY], "source": "demo"}, "by key, and chosen by source"),
        ({"keys": [KEY], "until": "2026-01-01"}, "by key, and chosen by until"),
        ({"keys": [str(KEY)]}, "key"),
        ({"keys": str(KEY)}, "key"),
        ({"source": "Demo"}, "source 'Demo'"),
        ({"source": 1}, "source"),
        ({"queries": ["clicks", "a b"]}, "query_name 'a b'"),
        ({"customers": ["123-456-7890"]}, "customer_id '123-456-7890'"),
        ({"customers": [7]}, "customer_id 7"),
        ({"since": "yesterday"}, "since 'yesterday'"),
        ({"until": datetime(2026, 1, 1, tzinfo=UTC)}, "until"),
        ({"runs": ["1"]}, "run_id '1'"),
        ({"statuses": ["done"]}, "status 'done'"),
    ],
)
def test_what_no_partition_could_be_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        Selection(**wrong)


def test_keys_cannot_be_narrowed() -> None:
    with pytest.raises(InvalidInput, match="by key"):
        Selection(keys=[KEY]).narrowed(customers=["a"])
