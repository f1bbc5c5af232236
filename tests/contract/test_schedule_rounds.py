"""R-CTL-2, R-PST-8: a round opens work for what is due and has none, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.selection import Selection
from sealbook.model.universe import Account, Asset, AssetName, Universe
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import accept, reject
from tests.support.pointers import staged
from tests.support.schedule import SetClock, work_in

FIRST = date(2026, 2, 20)
CLICKS = AssetName("demo", "clicks")
HOUR = timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time: noon of the first of March, when nine days are over since the first."""
    return SetClock(NOON)


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock) as opened:
        yield opened


def expectations(now: datetime, *customers: str, max_lag: timedelta = 2 * HOUR) -> Expectations:
    freshness = Freshness((3 * HOUR, timedelta(days=2)), max_lag)
    accounts = {name: Account(name, first_day=FIRST) for name in customers or ("a",)}
    return Expectations(Universe({CLICKS: Asset(CLICKS, freshness)}, {"demo": accounts}), now)


def key(day: date, customer: str = "a") -> PartitionKey:
    return PartitionKey("demo", customer, "clicks", day)


def publish(ledger: Ledger, *keys: PartitionKey) -> None:
    ledger.judge([accept(each) for each in keys])
    ledger.pointers.swap([staged(each, 1) for each in keys])
    ledger.projector().catch_up()


def open_due(ledger: Ledger, expected: Expectations) -> dict[Lane, int]:
    ledger.projector().catch_up()
    return dict(ledger.rounds.open_due(expected))


def test_what_lacks_is_opened_once(ledger: Ledger, clock: SetClock) -> None:
    """The latest days are fresh, the others are history."""
    expected = expectations(clock.now)
    assert open_due(ledger, expected) == {Lane.BACKFILL: 6, Lane.FRESH: 3}
    rows = work_in(ledger)
    assert {each.logical_date for each, row in rows.items() if row.work.lane is Lane.FRESH} == {
        date(2026, 2, day) for day in (26, 27, 28)
    }
    assert {row.work.kind for row in rows.values()} == {WorkKind.FETCH}
    assert open_due(ledger, expected) == {}
    assert work_in(ledger) == rows
    assert len(ledger.scheduler.claim("ann", Terms(["demo"]), limit=99)) == 9


def test_a_day_is_due_again_at_each_due_point_however_late_it_may_be(ledger: Ledger, clock: SetClock) -> None:
    """R-PST-8: the source restates; what is published stays so meanwhile."""
    days = [FIRST + timedelta(days=each) for each in range(9)]
    clock.now = datetime(2026, 2, 28, 23, tzinfo=UTC)
    publish(ledger, *map(key, days))
    clock.now = NOON
    expected = expectations(NOON)
    assert open_due(ledger, expected) == {Lane.REFRESH: 2}
    # The 26th was published before its second point, on the 1st; the 28th before it was over.
    assert sorted(each.logical_date.day for each in work_in(ledger)) == [26, 28]
    assert len(list(ledger.pointers.open_pointers())) == 9


def test_what_is_accepted_is_loaded_and_not_fetched(ledger: Ledger, clock: SetClock) -> None:
    publish(ledger, *(key(FIRST + timedelta(days=each)) for each in range(1, 9)))
    ledger.judge([accept(key(FIRST))])
    assert open_due(ledger, expectations(clock.now)) == {Lane.FRESH: 1}
    [row] = work_in(ledger).values()
    assert (row.work.kind, row.key) == (WorkKind.LOAD, key(FIRST))
    assert row.work.run_id == ledger.state(key(FIRST)).current_run_id


def test_what_waits_for_its_next_try_is_left_to_wait(ledger: Ledger, clock: SetClock) -> None:
    publish(ledger, *(key(FIRST + timedelta(days=each)) for each in range(1, 9)))
    ledger.judge([reject(key(FIRST))])
    before = work_in(ledger)
    assert open_due(ledger, expectations(clock.now)) == {}
    assert work_in(ledger) == before


def test_only_what_is_chosen_and_at_its_cost(ledger: Ledger, clock: SetClock) -> None:
    ledger.projector().catch_up()
    found = ledger.rounds.due(
        expectations(clock.now, "a", "b"), Selection(customers="b", since="2026-02-28"), costs={CLICKS: 7}
    )
    assert [(each.customer_id, each.logical_date, each.cost) for each in found] == [
        ("b", date(2026, 2, 28), 7)
    ]
    assert work_in(ledger) == {}
