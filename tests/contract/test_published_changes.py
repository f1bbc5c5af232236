"""`changes`: complete, in order, repeatable, for any history, on each ledger (R-CON-5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from sealbook.book import Book
from sealbook.errors import IllegalMove, InvalidInput, NotFound
from sealbook.ledger import Ledger
from sealbook.model.publication import Withdrawal
from sealbook.model.published_changes import Changes, ChangeToken, UnreadPointer, net_changes
from sealbook.model.selection import Selection, key_of
from tests.support.histories import STEPS, WHO, History, Rows, Step, applied, replayed
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load, seen
from tests.support.published import open_book


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        yield opened


def kinds(found: Changes) -> list[tuple[str, str, int, int]]:
    """Return the day, the kind and the numbers of both runs of each change."""
    return [
        (str(each.logical_date), each.kind.value, int(each.from_run_id or 0), int(each.to_run_id or 0))
        for each in found.items
    ]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_replaying_from_any_token_gives_what_is_read_now(book: Book, steps: list[Step]) -> None:
    history = History(book)
    kept: list[tuple[str, Rows]] = [("0", {})]
    for step in [("accept", 0, 1), ("load", 0, 0), *steps]:
        try:
            history.take(step)
        except (IllegalMove, NotFound):
            continue
        with book.snapshot() as at:
            kept.append((at.token, history.rows(at)))
    now = history.rows(book)
    for token, rows in kept:
        found = history.changes(token)
        assert replayed(rows, found) == now
        assert history.changes(token) == found
        assert not found.more
        versions = [each.version for each in found.items]
        assert versions == sorted(versions)
        # Page by page it is the same, but for what verdicts did meanwhile, and undid.
        page, copy = history.changes(token, limit=1), rows
        while page.more:
            copy = replayed(copy, page)
            page = history.changes(page.token, limit=1)
        assert replayed(copy, page) == now
        assert history.changes(found.token).items == ()


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_changes_between_two_tokens_are_the_same_whenever_they_are_asked_for(
    book: Book, steps: list[Step]
) -> None:
    """What was told up to a token, also by a verdict, is told again, whatever has happened since."""
    history = History(book)
    kept: list[tuple[str, Rows]] = []
    told: list[tuple[str, Changes]] = []
    for step in [("accept", 0, 1), ("load", 0, 0), *steps]:
        try:
            history.take(step)
        except (IllegalMove, NotFound):
            continue
        with book.snapshot() as at:
            kept.append((at.token, history.rows(at)))
        told += [(token, history.changes(token)) for token, _ in kept]
    for token, found in told:
        again = history.changes(token, until=found.token)
        assert (again.items, again.token) == (found.items, found.token)
    for place, (token, rows) in enumerate(kept):
        for until, then in kept[place:]:
            found = history.changes(token, until=until)
            assert replayed(rows, found) == then
            assert applied(rows, net_changes(found.items)) == then
            page, copy = history.changes(token, limit=1, until=until), rows
            while page.more:
                copy = replayed(copy, page)
                page = history.changes(page.token, limit=1, until=until)
            assert replayed(copy, page) == then


def test_what_a_verdict_did_is_told_up_to_the_token_that_says_so_and_no_further(ledger: Ledger) -> None:
    pointers = ledger.reader.pointers
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    read = pointers.token()
    ledger.judge([reject(KEY, 1, again="a")])
    demoted = pointers.token()
    ledger.judge([accept(KEY, 1, again="b")])
    day = str(KEY.logical_date)
    assert kinds(pointers.changes(after=read, until=demoted)) == [(day, "withdrawn", 1, 0)]
    assert kinds(pointers.changes(after=demoted, until=pointers.token())) == [(day, "restored", 0, 1)]
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    load(ledger)
    assert kinds(pointers.changes(after=read, until=demoted)) == [(day, "withdrawn", 1, 0)]
    assert pointers.changes(after=read, until=read).items == ()


def test_what_changes_come_to_is_one_change_of_each_partition_or_none(ledger: Ledger) -> None:
    pointers = ledger.reader.pointers
    start = pointers.token()
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    first = pointers.token()
    ledger.judge([accept(KEY, 2), reject(OTHER, 1, again="a")])
    load(ledger)
    gone = pointers.token()
    ledger.judge([accept(OTHER, 1, again="b")])
    ledger.rollback(KEY, run_id(1), **WHO)
    load(ledger)
    days = str(KEY.logical_date), str(OTHER.logical_date)

    def net(after: ChangeToken, until: ChangeToken | None = None) -> list[tuple[str, str, int, int]]:
        found = pointers.changes(after=after, until=until)
        return sorted(kinds(replace(found, items=tuple(net_changes(found.items)))))

    assert net(start) == [(days[0], "published", 0, 1), (days[1], "published", 0, 1)]
    assert net(start, gone) == [(days[0], "published", 0, 2)]
    assert net(first, gone) == [(days[0], "replaced", 1, 2), (days[1], "withdrawn", 1, 0)]
    assert net(gone) == [(days[0], "replaced", 2, 1), (days[1], "restored", 0, 1)]
    assert net(first) == [], "all was undone"


def test_each_kind_in_order_with_its_runs(ledger: Ledger) -> None:
    pointers = ledger.reader.pointers
    start = pointers.token()
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2), reject(OTHER, 1, again="a")])
    middle = pointers.token()
    load(ledger)
    ledger.judge([accept(OTHER, 3)])
    load(ledger)
    days = str(KEY.logical_date), str(OTHER.logical_date)
    assert kinds(pointers.changes(after=start)) == [
        (days[0], "published", 0, 1),
        (days[1], "published", 0, 1),
        (days[1], "withdrawn", 1, 0),
        (days[0], "replaced", 1, 2),
        (days[1], "restored", 0, 3),
    ]
    assert kinds(pointers.changes(after=middle)) == [
        (days[0], "replaced", 1, 2),
        (days[1], "restored", 0, 3),
    ], "who knew that it was withdrawn is not told again"
    assert seen(ledger) == {KEY: run_id(2), OTHER: run_id(3)}


def test_a_demotion_is_told_before_a_load_comes_by_and_undone_if_it_is(ledger: Ledger) -> None:
    """R-WH-5: it takes effect with the verdict."""
    pointers = ledger.reader.pointers
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    read = pointers.token()
    ledger.judge([reject(KEY, 1, again="a")])
    demoted = pointers.changes(after=read)
    day = str(KEY.logical_date)
    assert kinds(demoted) == [(day, "withdrawn", 1, 0)]
    assert pointers.changes(after=pointers.token(demoted.token)).items == ()
    ledger.judge([accept(KEY, 1, again="b")])
    assert kinds(pointers.changes(after=pointers.token(demoted.token))) == [(day, "restored", 0, 1)]
    assert pointers.changes(after=read).items == (), "for who was never told, nothing has changed"


def test_changes_since_a_cut_and_of_what_is_chosen(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.pointers.create_cut("month_end")
    ledger.judge([accept(KEY, 2), accept(OTHER, 2)])
    load(ledger)
    pointers = ledger.reader.pointers
    since = pointers.token("month_end")
    only = Selection(since=OTHER.logical_date, queries=OTHER.query_name)
    assert kinds(pointers.changes(only, since)) == [(str(OTHER.logical_date), "replaced", 1, 2)]
    assert len(pointers.changes(after=since).items) == 2


def test_tokens_that_are_none_are_refused(ledger: Ledger) -> None:
    pointers = ledger.reader.pointers
    with pytest.raises(InvalidInput, match="has not come to"):
        pointers.changes(after=pointers.token("99"))
    with pytest.raises(InvalidInput, match="has not come to"):
        pointers.changes(until=pointers.token("99"))
    with pytest.raises(InvalidInput, match="never was"):
        pointers.changes(until=ChangeToken(0, frozenset({UnreadPointer(*key_of(KEY), 3)})))
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    with pytest.raises(InvalidInput, match="until"):
        pointers.changes(after=pointers.token(), until=pointers.token("0"))
    with pytest.raises(InvalidInput, match="token"):
        pointers.token("7.nonsense")
    with pytest.raises(NotFound, match="no cut"):
        pointers.token("nowhere")


def test_a_token_reads_as_it_was_written() -> None:
    unread = frozenset({UnreadPointer(*key_of(KEY), 3), UnreadPointer(*key_of(OTHER), 5)})
    for token in (ChangeToken(7), ChangeToken(7, unread)):
        assert ChangeToken.parse(str(token)) == token
    assert str(ChangeToken(7)) == "7"


def test_a_consumer_advances_only_when_it_is_told_to(ledger: Ledger) -> None:
    pointers = ledger.pointers
    place = ("reports", KEY.source, KEY.query_name)
    assert pointers.consumer(*place) is None
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    found = pointers.changes()
    assert pointers.consumers() == []
    kept = pointers.advance(*place, found.token)
    assert pointers.consumers() == [kept] == [pointers.consumer(*place)]
    assert pointers.advance(*place, "0").version == 0, "it may go back, and read again"
    with pytest.raises(InvalidInput, match="has not come to"):
        pointers.advance(*place, "99")
    with pytest.raises(InvalidInput, match="consumer"):
        pointers.advance("No Name", *place[1:], "0")
    assert pointers.drop_consumer("reports") == 1
    with pytest.raises(NotFound, match="reports"):
        pointers.drop_consumer("reports")


def test_who_has_a_run_that_was_demoted_since(ledger: Ledger) -> None:
    """The blast radius: cuts that read it, and consumers that were told of it and not of its end."""
    pointers = ledger.pointers
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    pointers.create_cut("month_end")
    for name in ("late", "prompt"):
        pointers.advance(name, KEY.source, KEY.query_name, pointers.changes().token)
    pointers.advance("new", KEY.source, KEY.query_name, "0")
    assert {(each.holder, each.name, each.withdrawn) for each in pointers.holders(KEY)} == {
        ("cut", "month_end", None),
        ("consumer", "late", None),
        ("consumer", "prompt", None),
    }
    ledger.judge([reject(KEY, 1, again="a")])
    pointers.advance("prompt", KEY.source, KEY.query_name, pointers.changes().token)
    held = {each.name: (each.run_id, each.withdrawn) for each in pointers.holders(KEY)}
    demoted = (run_id(1), Withdrawal.REJECTED)
    assert held == {"month_end": demoted, "late": demoted}
    assert pointers.holders(OTHER) == []
