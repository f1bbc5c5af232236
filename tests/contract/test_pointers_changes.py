"""What of the published partitions is another than it was at a time, or at a cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from sealbook.errors import NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model import PartitionKey
from sealbook.model.publication import Change, Cut
from sealbook.model.selection import Selection
from tests.support.ledger import accept, reject
from tests.support.pointers import load

KEYS = [PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, day)) for day in range(1, 7)]
KEPT, REPLACED, DEMOTED, HIDDEN, NEW, BACK = KEYS
START = datetime(2026, 2, 1, tzinfo=UTC)


class Hands:
    """A clock that is set by hand."""

    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def ledger(ledger_url: str, clock: Hands) -> Iterator[Ledger]:
    with open_ledger(ledger_url, clock=clock) as opened:
        yield opened


def changes(ledger: Ledger, since: datetime | Cut, selection: Selection = EVERYTHING) -> dict[str, int]:
    found = ledger.reader.pointers.count_changes(selection, since)
    assert list(found) == list(Change)
    return {kind.value: count for kind, count in found.items() if count}


def test_every_kind_since_a_time_and_since_a_cut(ledger: Ledger, clock: Hands) -> None:
    ledger.judge([accept(key, 1) for key in (KEPT, REPLACED, DEMOTED, HIDDEN, BACK)])
    load(ledger)
    ledger.judge([reject(BACK, 1, again="a")])
    load(ledger)
    cut = ledger.pointers.create_cut("before")
    clock.now += timedelta(hours=1)
    before = clock.now
    clock.now += timedelta(hours=1)
    assert changes(ledger, before) == changes(ledger, cut) == {}

    ledger.judge([accept(REPLACED, 2), accept(NEW, 2), accept(BACK, 2), reject(HIDDEN, 1, again="b")])
    load(ledger)
    ledger.judge([reject(DEMOTED, 1, again="c")])  # no load has come by: consumers have lost it all the same
    expected = {"withdrawn": 2, "replaced": 1, "restored": 1, "published": 1}
    assert changes(ledger, before) == expected
    assert changes(ledger, ledger.reader.pointers.cut("before")) == expected
    late = Selection(since=NEW.logical_date)
    assert changes(ledger, before, late) == {"restored": 1, "published": 1}
    assert changes(ledger, clock.now) == {}, "what was withdrawn before is not withdrawn since"
    load(ledger)
    assert changes(ledger, before) == expected, "the load that ends the pointer changes nothing for readers"


def test_what_was_withdrawn_and_brought_back_has_not_changed(ledger: Ledger, clock: Hands) -> None:
    ledger.judge([accept(KEPT, 1)])
    load(ledger)
    before = clock.now
    clock.now += timedelta(hours=1)
    ledger.judge([reject(KEPT, 1, again="a")])
    load(ledger)
    assert changes(ledger, before) == {"withdrawn": 1}
    ledger.judge([accept(KEPT, 1, again="b")])
    load(ledger)
    assert changes(ledger, before) == {}


def test_what_was_first_published_and_then_replaced_is_first_published(ledger: Ledger, clock: Hands) -> None:
    before = clock.now
    clock.now += timedelta(hours=1)
    for run in (1, 2):
        ledger.judge([accept(NEW, run)])
        load(ledger)
    assert changes(ledger, before) == {"published": 1}


def test_there_is_no_such_cut(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="there is no cut 'gone'"):
        ledger.reader.pointers.cut("gone")
