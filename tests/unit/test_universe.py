"""R-PST-6: which partitions there should be, from when on, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.freshness import Freshness
from sealbook.model.selection import Selection
from sealbook.model.universe import (
    Account,
    Asset,
    AssetName,
    EarlierZone,
    Span,
    Universe,
    Upstream,
    check_upstreams,
)

CLICKS, ORDERS, BUDGETS = AssetName("ads", "clicks"), AssetName("shop", "orders"), AssetName("ads", "budgets")
JANUARY = date(2026, 1, 1)
DAY = timedelta(days=1)
NEW_YORK, KOLKATA = ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")


def universe(
    *accounts: Account, assets: Iterable[Asset] = (Asset(CLICKS),), first_known: date | None = JANUARY
) -> Universe:
    """Return one whose accounts are those of each source."""
    given = {asset.name: asset for asset in assets}
    by_id = {each.customer_id: each for each in accounts}
    known = {} if first_known is None else dict.fromkeys(given, first_known)
    return Universe(given, {name.source: by_id for name in given}, known)


def key(customer_id: str, day: date, asset: AssetName = CLICKS) -> PartitionKey:
    return PartitionKey(asset.source, customer_id, asset.query_name, day)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# An account, the first day that the ledger knows, and the days that the account has.
DAYS: list[tuple[Account, date | None, tuple[date, date] | None]] = [
    (Account("a"), None, None),
    (Account("a"), JANUARY, (JANUARY, date.max)),
    (Account("a", first_day=date(2025, 5, 1)), None, (date(2025, 5, 1), date.max)),
    (Account("a", first_day=date(2025, 5, 1)), JANUARY, (date(2025, 5, 1), date.max)),
    (Account("a", first_day=date(2026, 5, 1)), JANUARY, (date(2026, 5, 1), date.max)),
    (Account("a", last_day=date(2026, 5, 1)), JANUARY, (JANUARY, date(2026, 5, 1))),
    (Account("a", last_day=date(2025, 5, 1)), JANUARY, None),
    (Account("a", last_day=date(2026, 5, 1)), None, None),
    (Account("a", first_day=JANUARY, last_day=JANUARY), None, (JANUARY, JANUARY)),
    (Account("a", first_day=date.min, last_day=date.max), None, (date.min, date.max)),
]


@pytest.mark.parametrize(("account", "first_known", "days"), DAYS)
def test_an_account_has_days_from_its_first_or_from_the_first_that_is_known(
    account: Account, first_known: date | None, days: tuple[date, date] | None
) -> None:
    known = universe(account, first_known=first_known)
    assert known.days(CLICKS, account) == days
    for day in (date.min, JANUARY - DAY, JANUARY, date(2026, 5, 2), date.max):
        assert known.expects(key("a", day)) is (days is not None and days[0] <= day <= days[1])


def test_an_account_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the days of an account end before they begin"):
        Account("a", first_day=JANUARY, last_day=JANUARY - DAY)


def test_what_is_not_configured_is_neither_expected_nor_due() -> None:
    known, now = universe(Account("a")), at("2026-02-01")
    for other in (key("b", JANUARY), key("a", JANUARY, ORDERS), key("a", JANUARY, BUDGETS)):
        assert not known.expects(other)
        assert known.due_at(other) is None
        assert not known.is_due(other, now)
        assert known.freshness(other) is None
        assert known.zone(other) is UTC


def test_a_day_west_of_utc_that_is_not_over_is_not_due() -> None:
    west = universe(Account("a", NEW_YORK))
    last = key("a", date(2026, 1, 9))
    assert west.expects(last)
    assert not west.is_due(last, at("2026-01-10T04:59:59.999999"))
    assert west.is_due(last, at("2026-01-10T05:00"))
    assert universe(Account("a")).is_due(last, at("2026-01-10T00:00"))
    assert universe(Account("a", KOLKATA)).is_due(last, at("2026-01-09T18:30"))


def test_a_day_is_due_at_the_first_due_point_of_its_policy() -> None:
    policy = Freshness((timedelta(hours=6), 3 * DAY), max_lag=timedelta(hours=12))
    known = universe(Account("a", NEW_YORK), assets=[Asset(CLICKS, policy)])
    assert known.due_at(key("a", JANUARY)) == at("2026-01-02T11:00")
    assert known.freshness(key("a", JANUARY)) is policy
    assert known.freshness(key("a", JANUARY - DAY)) is None
    assert known.due_days(CLICKS, Account("a", NEW_YORK), at("2026-01-05T10:59")) == (
        JANUARY,
        date(2026, 1, 3),
    )


def test_the_last_day_of_the_calendar_is_expected_and_never_due() -> None:
    known = universe(Account("a", NEW_YORK), assets=[Asset(CLICKS, Freshness((DAY,)))])
    last = key("a", date.max)
    assert known.expects(last)
    assert not known.is_due(last, at("9999-12-31T23:59"))


SPANS = {
    "all": (Selection(), ["ads/a/budgets", "ads/a/clicks", "ads/b/budgets", "ads/b/clicks"]),
    "query": (Selection(queries="clicks"), ["ads/a/clicks", "ads/b/clicks"]),
    "customer": (Selection(customers=["b", "zz"]), ["ads/b/budgets", "ads/b/clicks"]),
    "source": (Selection(source="shop"), []),
    "none": (Selection(customers=[]), []),
}


@pytest.mark.parametrize("chosen", SPANS)
def test_spans_are_in_the_order_of_keys_and_as_chosen(chosen: str) -> None:
    known = universe(Account("b"), Account("a"), assets=[Asset(CLICKS), Asset(BUDGETS)])
    selection, names = SPANS[chosen]
    spans = list(known.due(selection, at("2026-01-04T12:00")))
    assert ["/".join(span[:3]) for span in spans] == names
    assert {(span.first, span.last, span.days) for span in spans} <= {(JANUARY, date(2026, 1, 3), 3)}


def test_spans_end_where_the_selection_ends() -> None:
    known, now = universe(Account("a")), at("2026-02-01")

    def days(**span: Any) -> list[tuple[str, str]]:
        return [(str(each.first), str(each.last)) for each in known.due(Selection(**span), now)]

    assert days() == [("2026-01-01", "2026-01-31")]
    assert days(since="2025-12-01", until="2026-01-02") == [("2026-01-01", "2026-01-02")]
    assert days(since="2026-01-30") == [("2026-01-30", "2026-01-31")]
    assert days(since="2026-02-01") == []
    assert days(until="2025-12-31") == []


def test_keys_are_spans_of_their_own_if_they_are_due() -> None:
    known = universe(Account("a"), Account("b"))
    keys = [key("b", JANUARY), key("a", JANUARY + DAY), key("a", JANUARY), key("c", JANUARY)]
    keys += [key("a", JANUARY - DAY), key("a", date(2026, 2, 1)), key("a", JANUARY)]
    assert list(known.due(Selection(keys=keys), at("2026-02-01T12:00"))) == [
        Span("ads", "a", "clicks", JANUARY, JANUARY),
        Span("ads", "a", "clicks", JANUARY + DAY, JANUARY + DAY),
        Span("ads", "b", "clicks", JANUARY, JANUARY),
    ]


NEAR = st.dates(date(2025, 12, 20), date(2026, 1, 20))
ZONES = st.sampled_from([UTC, NEW_YORK, KOLKATA, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Africa/Cairo")])
EARLIER = st.dictionaries(NEAR, ZONES, max_size=2).map(
    lambda zones: tuple(EarlierZone(*each) for each in sorted(zones.items()))
)
ACCOUNTS = st.builds(
    lambda zone, ends, earlier: Account("a", zone, ends[0], ends[1], earlier),
    ZONES,
    st.tuples(NEAR, NEAR).map(sorted) | st.tuples(st.none() | NEAR, st.none()) | st.tuples(st.none(), NEAR),
    EARLIER,
)
POLICIES = st.none() | st.timedeltas(timedelta(), 3 * DAY).map(lambda point: Freshness((point,)))


@given(ACCOUNTS, POLICIES, st.none() | NEAR, st.timedeltas(-7 * DAY, 14 * DAY).map(at("2026-01-01").__add__))
def test_the_days_that_are_due_are_those_that_are_due_one_by_one(
    account: Account, policy: Freshness | None, first_known: date | None, now: datetime
) -> None:
    known = universe(account, assets=[Asset(CLICKS, policy)], first_known=first_known)
    days = [date(2025, 12, 18) + number * DAY for number in range(36)]
    due = [day for day in days if known.is_due(key("a", day), now)]
    assert known.due_days(CLICKS, account, now) == ((due[0], due[-1]) if due else None)
    assert due == [day for day in days if due and due[0] <= day <= due[-1]]


# What the clicks of 10 January are made of.
UPSTREAMS: list[tuple[Upstream, list[str]]] = [
    (Upstream(ORDERS), ["shop/a/orders/2026-01-10"]),
    (Upstream(ORDERS, -2, -1), ["shop/a/orders/2026-01-08", "shop/a/orders/2026-01-09"]),
    (Upstream(ORDERS, all_customers=True), ["shop/a/orders/2026-01-10", "shop/b/orders/2026-01-10"]),
    (Upstream(ORDERS, -12, -9), ["shop/a/orders/2026-01-01"]),
    (Upstream(ORDERS, -12, -11), []),
    (Upstream(BUDGETS, 1, 1), ["ads/a/budgets/2026-01-11"]),
]


@pytest.mark.parametrize(("upstream", "keys"), UPSTREAMS)
def test_a_partition_is_made_of_those_that_are_mapped_and_expected(
    upstream: Upstream, keys: list[str]
) -> None:
    assets = [Asset(CLICKS, upstreams=(upstream,)), Asset(ORDERS), Asset(BUDGETS)]
    known = universe(Account("b"), Account("a"), assets=assets)
    assert list(map(str, known.upstreams(key("a", date(2026, 1, 10))))) == keys
    assert list(known.upstreams(key("a", JANUARY - DAY))) == []
    assert list(known.upstreams(key("a", JANUARY, ORDERS))) == []


def test_a_customer_that_another_source_does_not_have_has_no_upstream_there() -> None:
    google = AssetName("google_ads", "clicks")
    assets = {CLICKS: Asset(CLICKS, upstreams=(Upstream(google),)), google: Asset(google)}
    accounts = {"ads": {"a": Account("a")}, "google_ads": {"1234567890": Account("1234567890")}}
    known = Universe(assets, accounts, dict.fromkeys(assets, JANUARY))
    assert list(known.upstreams(key("a", JANUARY))) == []


@pytest.mark.parametrize("day", [date.min, date.max])
@pytest.mark.parametrize("window", [(-7, -1), (-7, 7), (1, 7)])
def test_windows_end_with_the_calendar(day: date, window: tuple[int, int]) -> None:
    account = Account("a", first_day=date.min)
    assets = [Asset(CLICKS, upstreams=(Upstream(ORDERS, *window),)), Asset(ORDERS)]
    ordinals = range(day.toordinal() + window[0], day.toordinal() + window[1] + 1)
    expected = [each for each in ordinals if 1 <= each <= date.max.toordinal()]
    found = universe(account, assets=assets).upstreams(key("a", day))
    assert [each.logical_date.toordinal() for each in found] == expected


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the first day, then the last one"):
        Upstream(ORDERS, 0, -1)


def chain(*names: str) -> list[Asset]:
    """Return assets each of which is made of the next; the last one of nothing."""
    assets = [AssetName("ads", name) for name in names]
    made = [(Upstream(above),) for above in assets[1:]]
    return [Asset(name, upstreams=above) for name, above in zip(assets, [*made, ()], strict=True)]


def test_an_upstream_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="there is no query ads/b") as refusal:
        check_upstreams(chain("a", "b")[:1])
    assert refusal.value.value == (AssetName("ads", "a"), AssetName("ads", "b"))


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["c", "a", "b"], [f"n{n}" for n in range(2_000)]])
def test_a_circle_of_upstreams_is_refused_and_shown(circle: list[str]) -> None:
    *others, last = chain(*circle)
    closing = Asset(last.name, upstreams=(Upstream(AssetName("ads", circle[0])),))
    with pytest.raises(InvalidInput, match="upstreams go round in a circle: ads/") as refusal:
        check_upstreams([*others, closing, *chain("beside", circle[0])[:1]])
    shown = [name.query_name for name in refusal.value.value]  # type: ignore[attr-defined]
    assert shown[0] == shown[-1]
    assert sorted(shown[:-1]) == sorted(circle)
    made_of = dict(zip(circle, [*circle[1:], circle[0]], strict=True))
    assert all(made_of[below] == above for below, above in pairwise(shown))


GRAPHS = st.integers(1, 7).flatmap(
    lambda size: st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))).map(
        lambda edges: (size, edges)
    )
)


@given(GRAPHS)
def test_circles_are_refused_and_nothing_else_is(graph: tuple[int, set[tuple[int, int]]]) -> None:
    size, edges = graph
    names = [AssetName("ads", f"q{number}") for number in range(size)]
    assets = [
        Asset(name, upstreams=tuple(Upstream(names[above]) for below, above in edges if below == number))
        for number, name in enumerate(names)
    ]
    reach = set(edges)
    for middle in range(size):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c == middle}
    if any((number, number) in reach for number in range(size)):
        with pytest.raises(InvalidInput, match="circle"):
            check_upstreams(assets)
    else:
        check_upstreams(assets)
