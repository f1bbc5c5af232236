"""Alerts wait in an outbox until a receiver has taken them: each once, in order, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from sealbook.errors import Conflict, Transient
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.alerts import KEPT, AlertTurn
from sealbook.ledger.db.turns import TURN
from sealbook.model.alerts import Alert, AlertKind, Notice
from sealbook.model.scope import Scope
from sealbook.status.alerting import BATCH, send_notices

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


def alert(subject: str = "a", kind: AlertKind = AlertKind.LATE) -> Alert:
    return Alert(kind, subject, START, f"{subject} is {kind}", f"sealbook explain {subject}")


class Keeper:
    """A receiver that keeps what it takes, until it is told to fail."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.fails = False

    def take(self, batch: bytes) -> None:
        if self.fails:
            raise Transient("down")
        self.batches.append(batch)


def send(ledger: Ledger, *alerts: Alert, receiver: Keeper | None = None) -> int:
    with ledger.alerts.turn() as turn:
        turn.record(alerts)
        return send_notices(turn, receiver or Keeper())


def waiting(ledger: Ledger) -> list[Notice]:
    with ledger.alerts.turn() as turn:
        return turn.waiting(100)


def told(notices: list[Notice]) -> list[tuple[str, str]]:
    return [(each.alert.subject, each.state.value) for each in notices]


def test_an_alert_is_told_once_and_once_more_when_it_is_over(ledger: Ledger, clock: Hands) -> None:
    assert send(ledger, alert("a"), alert("b")) == 2
    clock.now += timedelta(minutes=5)
    assert send(ledger, alert("a"), alert("b")) == 0, "the same cause"
    with ledger.alerts.turn() as turn:
        recorded = turn.record([alert("b"), alert("b", AlertKind.WITHDRAWN)])
        assert (recorded.raised, recorded.resolved) == (1, 1)
        first, second = turn.waiting(100)
    assert told([first, second]) == [("b", "raised"), ("a", "resolved")]
    assert second.raised_at == START
    assert second.resolved_at == clock.now
    assert (first.resolved_at, first.id) == (None, f"{first.alert_id}/raised")


def test_what_comes_again_after_it_was_over_is_another(ledger: Ledger) -> None:
    send(ledger, alert())
    send(ledger)
    with ledger.alerts.turn() as turn:
        turn.record([alert()])
        [again] = turn.waiting(100)
    assert told([again]) == [("a", "raised")]


def test_nothing_is_lost_while_the_receiver_is_down(ledger: Ledger) -> None:
    receiver = Keeper()
    receiver.fails = True
    for alerts in ([alert("a")], [alert("a"), alert("b")], [alert("b")], []):
        with pytest.raises(Transient):
            send(ledger, *alerts, receiver=receiver)
    expected = [("a", "raised"), ("b", "raised"), ("a", "resolved"), ("b", "resolved")]
    assert told(waiting(ledger)) == expected, "in the order in which it happened"
    receiver.fails = False
    assert send(ledger, receiver=receiver) == 4
    assert waiting(ledger) == []


def test_what_is_over_and_was_told_is_kept_for_a_while(ledger: Ledger, clock: Hands) -> None:
    receiver = Keeper()
    send(ledger, alert("long"), alert("over"), alert("untold"))
    send(ledger, alert("long"), alert("untold"))
    receiver.fails = True
    with pytest.raises(Transient):
        send(ledger, alert("long"), receiver=receiver)

    def pruned() -> int:
        with ledger.alerts.turn() as turn:
            return turn.prune()

    def left() -> list[str]:
        both = "SELECT subject FROM alert JOIN alert_notice ON alert_id = alert.id ORDER BY subject"
        with ledger._database.read() as connection:
            return list(connection.execute(text(both)).scalars())

    everything = ["long", "over", "over", "untold", "untold"]
    assert (pruned(), left()) == (0, everything)
    clock.now += KEPT
    assert (pruned(), left()) == (0, everything), "not before its time"
    clock.now += timedelta(seconds=1)
    assert (pruned(), left()) == (1, ["long", "untold", "untold"]), "nor what is not over, or nobody heard of"
    send(ledger, alert("long"))
    assert (pruned(), left()) == (1, ["long"])
    with ledger._database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM alert_notice")).scalar() == 1


def test_an_outage_is_a_few_batches(ledger: Ledger) -> None:
    receiver = Keeper()
    assert (
        send(ledger, *(alert(f"{number:05}") for number in range(2 * BATCH + 1)), receiver=receiver) == 2001
    )
    assert [batch.count(b'"id"') for batch in receiver.batches] == [BATCH, BATCH, 1]


def test_a_batch_that_was_taken_is_not_sent_again_when_the_next_fails(ledger: Ledger) -> None:
    class FailsSecond(Keeper):
        def take(self, batch: bytes) -> None:
            self.fails = bool(self.batches)
            super().take(batch)

    with pytest.raises(Transient):
        send(ledger, *(alert(f"{number:05}") for number in range(BATCH + 1)), receiver=FailsSecond())
    assert told(waiting(ledger)) == [(f"{BATCH:05}", "raised")]


def test_two_at_once_do_not_both_have_a_turn(ledger: Ledger, ledger_url: str, clock: Hands) -> None:
    with (
        open_ledger(ledger_url, clock=clock) as other,
        ledger.alerts.turn() as turn,
        pytest.raises(Conflict, match="another is sending alerts"),
        other.alerts.turn(),
    ):
        turn.record([alert()])
    assert send(ledger, alert()) == 1


def test_who_lost_the_turn_writes_nothing(ledger: Ledger, ledger_url: str, clock: Hands) -> None:
    """It was asleep for so long that another took over: nothing that it still does can be doubled."""
    doings: list[Callable[[AlertTurn], object]] = [
        lambda turn: turn.record([alert("late")]),
        lambda turn: turn.waiting(1),
        lambda turn: turn.mark_sent([]),
    ]
    with open_ledger(ledger_url, clock=clock) as other, ledger.alerts.turn() as slept:
        slept.record([alert()])
        clock.now += TURN + timedelta(seconds=1)
        with other.alerts.turn() as turn:
            for doing in doings:
                with pytest.raises(Conflict, match="another took over"):
                    doing(slept)
            assert told(turn.waiting(100)) == [("a", "raised")]


def test_who_died_after_the_receiver_took_it_is_repeated_under_the_same_id(
    ledger: Ledger, clock: Hands
) -> None:
    with ledger.alerts.turn() as turn:
        turn.record([alert()])
        [before] = turn.waiting(100)
    clock.now += TURN + timedelta(seconds=1)
    [after] = waiting(ledger)
    assert after == before


def test_the_database_holds_one_cause_to_one_alert(ledger: Ledger) -> None:
    """Whatever the code does."""
    send(ledger, alert())
    again = text(
        "INSERT INTO alert (id, tenant_id, workspace_id, kind, subject, message, command, raised_at)"
        " SELECT 'x', tenant_id, workspace_id, kind, subject, message, command, raised_at FROM alert"
    )
    with pytest.raises(Exception, match=r"(?i)unique"):
        ledger._database.write(lambda connection: connection.execute(again))


def test_books_of_other_scopes_know_nothing_of_it(ledger: Ledger, ledger_url: str, clock: Hands) -> None:
    with (
        open_ledger(ledger_url, clock=clock, scope=Scope("other", "default")) as other,
        ledger.alerts.turn() as turn,
        other.alerts.turn() as theirs,
    ):
        turn.record([alert("mine")])
        theirs.record([alert("mine"), alert("theirs")])
        assert told(turn.waiting(100)) == [("mine", "raised")]
        assert told(theirs.waiting(100)) == [("mine", "raised"), ("theirs", "raised")]
        theirs.record([])
        assert told(turn.waiting(100)) == [("mine", "raised")]
