"""Accounts that sources tell of are kept with their history, and asked for by one at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete

from sealbook.config import ControlSettings, SourceSettings
from sealbook.control.accounts import AccountRefresher
from sealbook.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    NotFound,
    Permanent,
    QuotaExceeded,
    Transient,
)
from sealbook.extract.discovering import discover_accounts
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.accounts.tables import account_sighting
from sealbook.ledger.accounts.writer import REQUESTS, TURN
from sealbook.model.accounts import DiscoveredAccount, Presence
from sealbook.model.discovery import Discovery
from sealbook.model.scope import Scope
from sealbook.model.work import Lane
from tests.contract.test_ledger_roles import Granted, granted

__all__ = ["granted"]

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
A = DiscoveredAccount(
    "a", "shop", time_zone="Europe/Berlin", currency="EUR", labels=("vip", "daily"), level=1
)
B = DiscoveredAccount("b", None, status="canceled", is_open=False, is_hidden=True, is_manager=True, level=2)


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


def refresh(ledger: Ledger, *accounts: DiscoveredAccount, source: str = "ads") -> None:
    with ledger.accounts.turn(source) as turn:
        turn.record("root", accounts)


def test_what_a_source_tells_is_kept_as_it_was_told_with_its_history(ledger: Ledger, clock: Hands) -> None:
    refresh(ledger, A, B)
    clock.now += timedelta(days=1)
    other = replace(A, time_zone="Asia/Tokyo")
    with ledger.accounts.turn("ads") as turn:
        done = turn.record("root", [other])
    assert (done.accounts, done.found, done.changed, done.vanished) == (1, (), ("a",), ("b",))
    a, b = ledger.reader.accounts.known("ads")
    assert [(each.at, each.account) for each in a.history] == [(START, A), (clock.now, other)]
    assert [(each.presence, each.account) for each in b.history] == [
        (Presence.SEEN, B),
        (Presence.VANISHED, B),
    ]
    assert [(each.what, each.before, each.after) for each in a.changes()] == [
        ("found", None, None),
        ("time_zone", "Europe/Berlin", "Asia/Tokyo"),
    ]
    stands = ledger.reader.accounts.refresh("ads")
    assert (stands.root, stands.refreshed_at, stands.failures) == ("root", clock.now, 0)


def test_books_and_sources_have_accounts_of_their_own(ledger: Ledger, ledger_url: str) -> None:
    refresh(ledger, A)
    refresh(ledger, B, source="other")
    with open_ledger(ledger_url, scope=Scope("tenant", "space")) as elsewhere:
        assert elsewhere.reader.accounts.known("ads") == []
        refresh(elsewhere, B)
        assert [each.customer_id for each in elsewhere.reader.accounts.known("ads")] == ["b"]
    assert [each.customer_id for each in ledger.reader.accounts.known("ads")] == ["a"]
    assert [each.customer_id for each in ledger.reader.accounts.known("other")] == ["b"]


def test_a_failure_is_noted_and_takes_nothing_away(ledger: Ledger, clock: Hands) -> None:
    refresh(ledger, A)
    clock.now += timedelta(days=1)
    for _ in range(2):
        with ledger.accounts.turn("ads") as turn:
            turn.fail("down")
    stands = ledger.reader.accounts.refresh("ads")
    assert (stands.refreshed_at, stands.failed_at, stands.failures, stands.error) == (
        START,
        clock.now,
        2,
        "down",
    )
    assert [each.account for each in ledger.reader.accounts.known("ads")] == [A]
    clock.now += timedelta(days=1)
    refresh(ledger, A)
    stands = ledger.reader.accounts.refresh("ads")
    assert (stands.failures, stands.error) == (0, None)


def test_one_asks_at_a_time_and_one_that_was_overtaken_adds_nothing(ledger: Ledger, clock: Hands) -> None:
    with ExitStack() as stack:
        slow = stack.enter_context(ledger.accounts.turn("ads"))
        with pytest.raises(Conflict, match="another is asking ads"), ledger.accounts.turn("ads"):
            pass
        with ledger.accounts.turn("other"):
            pass
        clock.now += TURN + timedelta(seconds=1)
        refresh(ledger, A)  # it took too long: another took over
        late = slow.record("root", [B])
        assert (late.found, late.vanished) == ((), ())
    assert [each.account for each in ledger.reader.accounts.known("ads")] == [A]
    assert ledger.reader.accounts.refresh("ads").refreshed_at == clock.now


def test_only_what_has_vanished_is_forgotten_and_that_is_kept_with_its_reason(
    ledger: Ledger, clock: Hands
) -> None:
    refresh(ledger, A)
    with pytest.raises(Conflict, match="has not vanished"):
        ledger.accounts.forget("ads", "a", actor="ann", reason="left")
    with pytest.raises(NotFound, match="never told of an account x"):
        ledger.accounts.forget("ads", "x", actor="ann", reason="left")
    clock.now += timedelta(days=1)
    refresh(ledger)
    with pytest.raises(InvalidInput, match="reason"):
        ledger.accounts.forget("ads", "a", actor="ann", reason=" ")
    ledger.accounts.forget("ads", "a", actor="ann", reason="left")
    with pytest.raises(Conflict, match="it is forgotten"):
        ledger.accounts.forget("ads", "a", actor="ann", reason="left")
    [known] = ledger.reader.accounts.known("ads")
    last = known.history[-1]
    assert (last.presence, last.actor, last.reason) == (Presence.FORGOTTEN, "ann", "left")
    refresh(ledger)
    assert ledger.reader.accounts.known("ads") == [known], "who is forgotten is not missed again"


class Teller:
    """What a source would answer; and how often it was asked."""

    def __init__(self, *accounts: DiscoveredAccount) -> None:
        self.accounts = list(accounts)
        self.fails = False
        self.asked = 0

    def __call__(self, _settings: SourceSettings) -> list[DiscoveredAccount]:
        self.asked += 1
        if self.fails:
            raise Transient("the server is down")
        return self.accounts


class Heard(list[tuple[str, dict[str, object]]]):
    def __call__(self, event: str, **fields: object) -> None:
        self.append((event, fields))


def refresher(ledger: Ledger, teller: Teller, budget: int | None = None) -> AccountRefresher:
    source = SourceSettings("ads", (), {}, {}, discovery=Discovery("root"), file=Path("sealbook.yaml"))
    control = ControlSettings(requests_per_day={} if budget is None else {"ads": budget})
    return AccountRefresher(ledger, {"ads": source}, control, lambda: None, teller)


def test_a_source_is_asked_when_its_interval_is_over_and_sooner_after_a_failure(
    ledger: Ledger, clock: Hands
) -> None:
    teller, heard = Teller(A), Heard()
    accounts = refresher(ledger, teller)
    accounts.refresh_due(["ads"], heard)
    accounts.refresh_due(["ads"], heard)
    assert (teller.asked, [event for event, _ in heard]) == (1, ["accounts"])
    assert heard[0][1] == {"source": "ads", "accounts": 1, "found": 1, "changed": 0, "vanished": 0}
    clock.now += timedelta(days=1)
    teller.fails = True
    accounts.refresh_due(["ads"], heard)
    assert heard[-1] == ("accounts_failed", {"source": "ads", "error": "the server is down"})
    assert [each.account for each in ledger.reader.accounts.known("ads")] == [A]
    accounts.refresh_due(["ads"], heard)
    assert teller.asked == 2, "not at once"
    clock.now += timedelta(minutes=5)
    teller.fails = False
    accounts.refresh_due(["ads"], heard)
    assert (teller.asked, heard[-1][0]) == (3, "accounts")
    teller.fails = True
    with pytest.raises(Transient):
        accounts.refresh("ads")


def test_another_root_is_asked_at_once(ledger: Ledger, clock: Hands) -> None:
    teller, heard = Teller(A), Heard()
    accounts = refresher(ledger, teller)
    accounts.refresh_due(["ads"], heard)
    clock.now += timedelta(seconds=1)
    moved = replace(accounts.sources["ads"], discovery=Discovery("elsewhere"))
    replace(accounts, sources={"ads": moved}).refresh_due(["ads"], heard)
    assert (teller.asked, ledger.reader.accounts.refresh("ads").root) == (2, "elsewhere")


def test_it_is_counted_in_the_budget_and_waits_for_room_in_it(ledger: Ledger, clock: Hands) -> None:
    teller, heard = Teller(A), Heard()
    accounts = refresher(ledger, teller, budget=2 * REQUESTS - 1)
    accounts.refresh_due(["ads"], heard)
    assert ledger.reader.schedule.spent() == {("ads", Lane.FRESH): REQUESTS}
    clock.now += timedelta(hours=23)
    with pytest.raises(QuotaExceeded, match="no room"):
        accounts.refresh("ads")
    assert (teller.asked, ledger.reader.accounts.refresh("ads").failures) == (1, 0)
    clock.now += timedelta(hours=2)
    accounts.refresh_due(["ads"], heard)
    assert teller.asked == 2


def test_two_loops_at_once_ask_once(ledger: Ledger, ledger_url: str, clock: Hands) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow(Teller):
        def __call__(self, settings: SourceSettings) -> list[DiscoveredAccount]:
            entered.set()
            assert go_on.wait(30)
            return super().__call__(settings)

    slow, quick = Slow(A), Teller(B)
    first = threading.Thread(target=refresher(ledger, slow).refresh_due, args=(["ads"], Heard()))
    first.start()
    try:
        assert entered.wait(30)
        with open_ledger(ledger_url, clock=clock) as other:
            heard = Heard()
            refresher(other, quick).refresh_due(["ads"], heard)
            assert (quick.asked, heard) == (0, [])
    finally:
        go_on.set()
        first.join()
    assert [each.account for each in ledger.reader.accounts.known("ads")] == [A]


def test_a_source_with_listed_customers_is_never_asked(ledger: Ledger) -> None:
    teller = Teller(A)
    accounts = refresher(ledger, teller)
    listed = replace(accounts.sources["ads"], discovery=None, customers=("a",))
    replace(accounts, sources={"ads": listed}).refresh_due(["ads"], Heard())
    assert teller.asked == 0
    with pytest.raises(ConfigError, match="are listed in the settings"):
        discover_accounts(listed)


@pytest.mark.parametrize("role", ["consumer", "viewer", "extractor", "validator", "loader"])
def test_on_postgresql_all_may_read_accounts_and_only_control_may_write_them(
    granted: Granted, role: str
) -> None:
    with open_ledger(granted.url_as("control")) as control:
        refresh(control, A, B)
        refresh(control)
        control.accounts.forget("ads", "a", actor="ann", reason="left")
        with control.accounts.turn("ads") as turn:
            turn.fail("down")
        with pytest.raises(Permanent, match="permission denied"):
            control._database.write(lambda connection: connection.execute(delete(account_sighting)))
    with open_ledger(granted.url_as(role)) as worker:
        before = worker.reader.accounts.known("ads")
        assert [each.customer_id for each in before] == ["a", "b"]
        with pytest.raises(Permanent, match="permission denied"):
            refresh(worker, A)
        with pytest.raises(Permanent, match="permission denied"):
            worker.accounts.forget("ads", "b", actor="ann", reason="left")
        assert worker.reader.accounts.known("ads") == before
