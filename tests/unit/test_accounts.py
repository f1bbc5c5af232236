"""What is expected of accounts that a source tells of: any refreshes, in any order, lose no history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import find_zone
from sealbook.errors import InvalidInput
from sealbook.model.accounts import DiscoveredAccount, KnownAccount, Presence, Sighting, sightings_of
from sealbook.model.discovery import BACKFILL, Discovery, Override, unknown_zone
from sealbook.model.universe import Account, EarlierZone

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
A = DiscoveredAccount("a", "shop", time_zone="Europe/Berlin")
ALL = Discovery("root")
DAY = timedelta(days=1)

Refresh = tuple[datetime, Sequence[DiscoveredAccount]]


def after(days: float) -> datetime:
    return START + timedelta(days=days)


def known(*sightings: tuple[float, DiscoveredAccount | Presence]) -> KnownAccount:
    """Make an account of what was seen so many days after the start."""
    history: list[Sighting] = []
    for days, seen in sightings:
        if isinstance(seen, DiscoveredAccount):
            history.append(Sighting(after(days), seen))
        else:
            history.append(Sighting(after(days), history[-1].account, seen, "ann", "gone"))
    return KnownAccount(tuple(history))


def expected(found: KnownAccount, discovery: Discovery = ALL) -> Account | None:
    return discovery.account(found, find_zone)


def fold(refreshes: Sequence[Refresh]) -> dict[str, list[Sighting]]:
    """Take refreshes in one after the other, as the ledger does."""
    histories: dict[str, list[Sighting]] = {}
    latest: datetime | None = None
    for at, seen in refreshes:
        for each in sightings_of(histories, seen, at, latest):
            histories.setdefault(each.account.customer_id, []).append(each)
        latest = at if latest is None else max(latest, at)
    return histories


_accounts = st.builds(
    DiscoveredAccount,
    st.sampled_from("abc"),
    status=st.sampled_from(("enabled", "closed")),
    time_zone=st.sampled_from((None, "UTC", "Asia/Tokyo", "Nowhere/Land")),
    labels=st.sampled_from(((), ("x",), ("x", "y"))),
)
_seen = st.lists(_accounts, max_size=3, unique_by=lambda each: each.customer_id)
_refreshes = st.lists(_seen, min_size=1, max_size=6).map(
    lambda seen: [(after(number), each) for number, each in enumerate(seen)]
)


@given(_refreshes)
def test_the_history_tells_what_each_refresh_saw(refreshes: list[Refresh]) -> None:
    """Whatever came later: at the time of each refresh the accounts are those that it told of."""
    histories = fold(refreshes)
    for at, seen in refreshes:
        then = {
            customer_id: last.account
            for customer_id, history in histories.items()
            if (past := [each for each in history if each.at <= at])
            and (last := past[-1]).presence is Presence.SEEN
        }
        assert then == {each.customer_id: each for each in seen}


@given(_refreshes, st.data())
def test_refreshes_that_come_late_or_again_add_nothing(refreshes: list[Refresh], data: st.DataObject) -> None:
    """Of any order, those count that are newer than all before them."""
    order = data.draw(st.permutations(refreshes + data.draw(st.lists(st.sampled_from(refreshes)))))
    newest = list(accumulate((at for at, _ in order), max))
    in_time = [each for number, each in enumerate(order) if number == 0 or each[0] > newest[number - 1]]
    assert fold(order) == fold(in_time)


@given(_refreshes)
def test_nothing_is_noted_of_what_stays_and_every_note_is_a_change(refreshes: list[Refresh]) -> None:
    for history in fold(refreshes).values():
        for before, now in pairwise(history):
            assert (before.presence, before.account) != (now.presence, now.account)
        changes = KnownAccount(tuple(history)).changes()
        assert {each.at for each in changes} == {each.at for each in history}


@given(_refreshes)
def test_an_account_that_vanishes_stays_expected(refreshes: list[Refresh]) -> None:
    """A refresh that tells of nobody, or of fewer, takes no day from what is expected."""
    before = {each: KnownAccount(tuple(history)) for each, history in fold(refreshes).items()}
    gone = fold([*refreshes, (after(100), [])])
    for customer_id, history in gone.items():
        assert expected(KnownAccount(tuple(history))) == expected(before[customer_id])


def test_a_link_by_two_ways_is_one_account_at_the_lesser_distance() -> None:
    near, far = replace(A, level=1), replace(A, level=3)
    for told in ([near, far], [far, near]):
        assert [each.account for each in sightings_of({}, told, START, None)] == [near]


@pytest.mark.parametrize(
    ("discovery", "first"),
    [
        (ALL, date(2026, 3, 1) - BACKFILL),
        (replace(ALL, backfill=90 * DAY), date(2025, 12, 1)),
        (replace(ALL, backfill=0 * DAY), date(2026, 3, 1)),
        (replace(ALL, backfill=1_000_000 * DAY), date.min),
        (replace(ALL, usual=Account("any", first_day=date(2020, 1, 1))), date(2020, 1, 1)),
        (replace(ALL, backfill=90 * DAY, usual=Account("any", first_day=date(2026, 2, 1))), date(2026, 2, 1)),
        (replace(ALL, backfill=9 * DAY, usual=Account("any", first_day=date(2026, 2, 1))), date(2026, 2, 20)),
        (replace(ALL, overrides={"a": Override(first_day=date(2019, 1, 1))}), date(2019, 1, 1)),
    ],
)
def test_a_new_account_begins_some_days_before_it_was_found(discovery: Discovery, first: date) -> None:
    found = expected(known((0, A)), discovery)
    assert found == Account("a", ZoneInfo("Europe/Berlin"), first)


def test_days_are_counted_where_the_account_is() -> None:
    """At noon UTC it is the next day in Kiritimati, and in Niue (UTC-11) it is one in the morning."""
    none = replace(ALL, backfill=0 * DAY)
    for zone, day in (("Pacific/Kiritimati", date(2026, 3, 2)), ("Pacific/Niue", date(2026, 3, 1))):
        found = expected(known((0, replace(A, time_zone=zone))), none)
        assert found is not None
        assert found.first_day == day


def test_what_is_closed_ends_before_that_day_and_what_is_reopened_goes_on() -> None:
    closed = replace(A, status="closed", is_open=False)
    found = expected(known((0, A), (5, closed)))
    assert found is not None
    assert found.last_day == date(2026, 3, 5)
    assert expected(known((0, A), (5, closed), (9, Presence.VANISHED))) == found, "gone for good"
    reopened = expected(known((0, A), (5, closed), (9, A)))
    assert reopened == expected(known((0, A)))
    assert expected(known((0, closed))) is None, "it never had a day"
    assert expected(known((0, closed), (2, A))) == expected(known((2, A)))


def test_an_account_that_is_forgotten_ends_when_it_was_gone_and_may_come_back() -> None:
    forgotten = known((0, A), (5, Presence.VANISHED), (20, Presence.FORGOTTEN))
    found = expected(forgotten)
    assert found is not None
    assert found.last_day == date(2026, 3, 5)
    assert forgotten.vanished_at == after(5)
    back = KnownAccount((*forgotten.history, Sighting(after(30), A)))
    assert expected(back) == expected(known((0, A)))
    assert [(each.what, each.actor) for each in back.changes()] == [
        ("found", None),
        ("vanished", "ann"),
        ("forgotten", "ann"),
        ("back", None),
    ]


def test_labels_choose_and_one_that_is_taken_off_ends_the_account() -> None:
    vip = replace(ALL, labels=frozenset({"vip", "daily"}))
    labelled = replace(A, labels=("vip", "other"))
    assert expected(known((0, A)), vip) is None
    found = expected(known((0, A), (3, labelled)), vip)
    assert found is not None
    assert (found.first_day, found.last_day) == (date(2026, 3, 4) - BACKFILL, None)
    found = expected(known((0, labelled), (7, A)), vip)
    assert found is not None
    assert found.last_day == date(2026, 3, 7)


def test_settings_choose_by_id_and_managers_have_no_days() -> None:
    assert expected(known((0, A)), replace(ALL, exclude=frozenset("a"))) is None
    assert expected(known((0, A)), replace(ALL, include=frozenset("b"))) is None
    assert expected(known((0, A)), replace(ALL, include=frozenset("a"))) == expected(known((0, A)))
    assert expected(known((0, replace(A, is_manager=True)))) is None


def test_days_before_another_time_zone_keep_the_one_they_had() -> None:
    tokyo = replace(A, time_zone="Asia/Tokyo")
    found = expected(known((0, A), (4, tokyo)))
    assert found is not None
    assert (found.zone, found.earlier) == (
        ZoneInfo("Asia/Tokyo"),
        (EarlierZone(date(2026, 3, 5), ZoneInfo("Europe/Berlin")),),
    )
    assert found.window(date(2026, 3, 4)).ends_at == datetime(2026, 3, 4, 23, tzinfo=UTC)
    assert found.window(date(2026, 3, 5)).ends_at == datetime(2026, 3, 5, 15, tzinfo=UTC)
    again = expected(known((0, A), (4, tokyo), (4.01, A)))
    assert again == expected(known((0, A))), "for less than a day"


def test_a_zone_that_nobody_knows_leaves_the_one_before_or_no_days() -> None:
    lost = replace(A, time_zone="Mars/Olympus")
    assert expected(known((0, lost))) is None
    assert expected(known((0, A), (3, lost))) == expected(known((0, A)))
    assert unknown_zone(known((0, A), (3, lost)), find_zone) == "Mars/Olympus"
    named = replace(ALL, overrides={"a": Override(zone=ZoneInfo("Asia/Tokyo"))})
    found = expected(known((0, lost)), named)
    assert found is not None
    assert (found.zone, found.earlier) == (ZoneInfo("Asia/Tokyo"), ())
    usual = replace(ALL, usual=Account("any", ZoneInfo("Asia/Tokyo")))
    told_none = expected(known((0, replace(A, time_zone=None))), usual)
    assert told_none is not None
    assert told_none.zone == ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"status": " "}, {"level": -1}, {"time_zone": "a\0b"}, {"labels": ("",)}]
)
def test_what_no_ledger_could_keep_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        DiscoveredAccount("a", **wrong)  # type: ignore[arg-type]
