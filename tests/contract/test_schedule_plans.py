"""R-CTL-3, R-CTL-5, R-CTL-8, R-CTL-11: what is carried out is what was previewed, and it is logged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from sealbook.errors import Drifted, IllegalMove, InvalidInput, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.states.tables import override_log
from sealbook.model import Status
from sealbook.model.plans import Plan, PlanKind, PlanRequest, PlanState, Progress
from sealbook.model.retry import Stop
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, Span
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import KEY, OTHER, accept, reject
from tests.support.schedule import DAY, SetClock, key_of, open_work, work_in, work_of

WHO: dict[str, Any] = {"actor": "ann", "reason": "the source was wrong"}
TERMS = Terms(["demo", "google_ads"])
BOTH = Selection(keys=[KEY, OTHER])


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time."""
    return SetClock()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock) as opened:
        yield opened


def span(customer: str = "a", days: int = 10) -> Span:
    return Span("demo", customer, "clicks", DAY, DAY + timedelta(days=days - 1))


def preview(ledger: Ledger, kind: PlanKind, selection: Selection = BOTH, **more: Any) -> Plan:
    return ledger.plans.preview(PlanRequest(kind, selection, **more), **WHO)[0]


def log(ledger: Ledger) -> list[tuple[Any, ...]]:
    columns = [override_log.c[name] for name in ("action", "actor", "reason", "keys")]
    with ledger._database.read() as connection:
        return [tuple(row) for row in connection.execute(select(*columns).order_by(override_log.c.id))]


def test_a_backfill_is_shown_first_and_then_done_as_shown(ledger: Ledger) -> None:
    """Days that are good, or are worked on already, are left out; the cost is in requests."""
    ledger.judge([accept(key_of("a", 0)), reject(key_of("a", 1))])
    open_work(ledger, [work_of(key_of("a", 2))])
    request = PlanRequest(
        PlanKind.BACKFILL, spans=(span(), span("b", 2)), costs={AssetName("demo", "clicks"): 3}
    )
    plan, items = ledger.plans.preview(request, name="winter", **WHO)
    assert (plan.state, plan.partitions, plan.requests) == (PlanState.PREVIEWED, 9, 27)
    assert [item.key for item in items] == [key_of("a", day) for day in range(3, 10)] + [
        key_of("b", 0),
        key_of("b", 1),
    ]
    assert len(work_in(ledger)) == 2, "a preview opens nothing"
    assert log(ledger) == []
    done = ledger.plans.carry_out(plan.id)
    assert (done.state, done.name) == (PlanState.OPEN, "winter")
    rows = work_in(ledger)
    assert {key for key, row in rows.items() if row.plan_id == plan.id} == {item.key for item in items}
    assert {rows[item.key].cost for item in items} == {3}
    assert {rows[item.key].work.lane for item in items} == {Lane.BACKFILL}
    assert log(ledger) == [("backfill", *WHO.values(), [str(item.key) for item in items])]
    assert [each.id for each in ledger.reader.schedule.plans()] == [plan.id]
    assert ledger.reader.schedule.plan_items(plan.id) == items


def test_force_takes_good_days_too(ledger: Ledger) -> None:
    ledger.judge([accept(key_of("a", 0))])
    assert preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),)).partitions == 1
    assert preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),), force=True).partitions == 2


def test_a_backfill_repeated_does_nothing(ledger: Ledger) -> None:
    for partitions in (10, 0):
        plan = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
        assert plan.partitions == partitions
        ledger.plans.carry_out(plan.id)
    assert len(work_in(ledger)) == 10


@pytest.mark.parametrize("moved", ["judged", "opened"])
def test_a_world_that_moved_is_refused_with_the_difference(ledger: Ledger, moved: str) -> None:
    """R-CTL-11: nothing is done, and the message names what is another by now."""
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
    if moved == "judged":
        ledger.judge([accept(key_of("a", 3))])
    else:
        open_work(ledger, [work_of(key_of("a", 3))])
    before, logged = work_in(ledger), log(ledger)
    with pytest.raises(Drifted, match="the world has moved") as refused:
        ledger.plans.carry_out(plan.id)
    assert list(refused.value.differences) == [f"{key_of('a', 3)}: was absent after 0, is not in it"]
    assert "Preview it again" in str(refused.value.remedy)
    assert (work_in(ledger), log(ledger)) == (before, logged)
    again = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
    assert ledger.plans.carry_out(again.id).state is PlanState.OPEN


def test_a_plan_is_carried_out_once(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
    ledger.plans.carry_out(plan.id)
    with pytest.raises(IllegalMove, match=r"is open, not previewed"):
        ledger.plans.carry_out(plan.id)
    with pytest.raises(NotFound):
        ledger.plans.carry_out(plan.id + 1)


def test_a_preview_is_kept_for_a_week(ledger: Ledger, clock: SetClock) -> None:
    old = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
    clock.move(days=7, seconds=1)
    preview(ledger, PlanKind.BACKFILL, spans=(span("b"),))
    with pytest.raises(NotFound, match="no plan"):
        ledger.plans.carry_out(old.id)


def test_a_retry_turns_failed_to_pending_and_judges_again(ledger: Ledger) -> None:
    """R-CTL-3: the keys, the filter, who and why are in the log of overrides."""
    ledger.judge([reject(KEY), accept(OTHER)])
    plan = preview(ledger, PlanKind.RETRY)
    assert plan.partitions == 1
    ledger.plans.carry_out(plan.id)
    assert ledger.state(KEY).status is Status.PENDING
    row = work_in(ledger)[KEY]
    assert (row.work.kind, row.plan_id) == (WorkKind.JUDGE, plan.id)
    assert log(ledger) == [("requeue", *WHO.values(), [str(KEY)])]


@pytest.mark.parametrize("kind", [PlanKind.RETRY, PlanKind.REPROCESS, PlanKind.MARK, PlanKind.CLEAR])
def test_everything_at_once_is_refused(ledger: Ledger, kind: PlanKind) -> None:
    """R-CTL-8."""
    with pytest.raises(InvalidInput, match="of everything is refused"):
        preview(ledger, kind, Selection())


def test_reprocessing_leaves_the_state_until_a_new_run_is_judged(ledger: Ledger) -> None:
    ledger.judge([accept(KEY), reject(OTHER)])
    plan = preview(ledger, PlanKind.REPROCESS)
    ledger.plans.carry_out(plan.id)
    assert (ledger.state(KEY).status, ledger.state(OTHER).status) == (Status.SUCCESS, Status.FAILED)
    rows = work_in(ledger)
    assert [(rows[key].work.kind, rows[key].work.lane) for key in (KEY, OTHER)] == [
        (WorkKind.FETCH, Lane.REFRESH),
        (WorkKind.FETCH, Lane.RETRY),
    ]
    assert len(ledger.scheduler.claim("ann", TERMS, limit=9)) == 2, "also what waited for its next try"


def test_work_is_given_up_and_taken_up_again(ledger: Ledger) -> None:
    """R-CTL-5: terminal ones are listed, marked and cleared; who was at one has lost it."""
    ledger.judge([reject(KEY), reject(OTHER)])
    open_work(ledger, [work_of(key_of("a"))])
    fences = ledger.scheduler.claim("bob", TERMS, limit=9).fences
    assert list(fences) == [key_of("a")]
    chosen = Selection(keys=[KEY, key_of("a")])
    marked = ledger.plans.carry_out(preview(ledger, PlanKind.MARK, chosen).id)
    assert (marked.state, marked.requests) == (PlanState.DONE, 0)
    terminal = list(ledger.reader.schedule.open_work(stopped=True))
    assert [(each.key, each.work.stop, each.stopped_by, each.stopped_reason) for each in terminal] == [
        (key, Stop.MANUAL, *WHO.values()) for key in (key_of("a"), KEY)
    ]
    assert ledger.scheduler.heartbeat("bob", fences) == set()
    cleared = preview(ledger, PlanKind.CLEAR, chosen)
    ledger.plans.carry_out(cleared.id)
    assert list(ledger.reader.schedule.open_work(stopped=True)) == []
    assert len(ledger.scheduler.claim("cy", TERMS, limit=9)) == 2
    assert [entry[0] for entry in log(ledger)] == ["mark", "clear"]


def test_a_plan_is_paused_resumed_and_cancelled(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(),))
    ledger.plans.carry_out(plan.id)
    held = ledger.scheduler.claim("ann", TERMS, limit=3).fences
    assert ledger.reader.schedule.progress(plan.id) == Progress(10, 3, 0)
    assert ledger.plans.pause(plan.id, **WHO).state is PlanState.PAUSED
    assert len(ledger.scheduler.claim("bob", TERMS, limit=9)) == 0
    assert ledger.scheduler.heartbeat("ann", held) == held.keys(), "what is being worked on goes on"
    assert ledger.plans.resume(plan.id, **WHO).state is PlanState.OPEN
    assert len(ledger.scheduler.claim("bob", TERMS, limit=2)) == 2
    cancelled = ledger.plans.cancel(plan.id, **WHO)
    assert (cancelled.state, work_in(ledger)) == (PlanState.CANCELLED, {})
    assert ledger.verdicts.judge_under([accept(key, 1) for key in held], held).states == []
    assert [(entry[0], len(entry[3])) for entry in log(ledger)] == [
        ("backfill", 10),
        ("pause", 0),
        ("resume", 0),
        ("cancel", 10),
    ]
    with pytest.raises(IllegalMove, match="cancelled"):
        ledger.plans.resume(plan.id, **WHO)


def test_a_plan_ends_when_nothing_of_it_is_open(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=1),))
    ledger.plans.carry_out(plan.id)
    assert ledger.plans.end_done() == []
    ledger._database.write(lambda c: c.exec_driver_sql("DELETE FROM work"))
    [ended] = ledger.plans.end_done()
    assert (ended.id, ended.state) == (plan.id, PlanState.DONE)
    assert ended.ended_at is not None


def test_scopes_are_paused_and_resumed_by_operators(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of(customer)) for customer in "ab"])
    scope = Scope("demo", "a")
    ledger.pauses.pause(scope, **WHO)
    [pause] = ledger.reader.schedule.pauses()
    assert (pause.scope, pause.actor, pause.until) == (scope, "ann", None)
    assert [claim.key for claim in ledger.scheduler.claim("bob", TERMS, limit=9)] == [key_of("b")]
    ledger.pauses.resume(scope, **WHO)
    assert [claim.key for claim in ledger.scheduler.claim("bob", TERMS, limit=9)] == [key_of("a")]
    with pytest.raises(NotFound, match="is not paused"):
        ledger.pauses.resume(scope, **WHO)
    assert [entry[0] for entry in log(ledger)] == ["pause", "resume"]


def test_what_is_open_can_be_looked_at(ledger: Ledger, clock: SetClock) -> None:
    ledger.judge([reject(KEY, error="12 rows have no date")])
    open_work(ledger, [work_of(key_of("a")), work_of(key_of("b"), Lane.BACKFILL)])
    ledger.scheduler.claim("bob", Terms(["demo"], lanes=[Lane.FRESH]), limit=9)
    reader = ledger.reader.schedule
    found = reader.work(KEY)
    assert found is not None
    assert (found.work.error, found.work.ready_at > clock.now) == ("12 rows have no date", True)
    assert reader.work(OTHER) is None
    assert [(each.key, each.holder) for each in reader.leases()] == [(key_of("a"), "bob")]
    counts = {lane: tuple(count) for lane, count in reader.lanes().items()}
    assert counts == {
        Lane.FRESH: (0, 0, 1, 0, 0),
        Lane.RETRY: (0, 1, 0, 0, 0),
        Lane.REFRESH: (0, 0, 0, 0, 0),
        Lane.BACKFILL: (1, 0, 0, 0, 0),
    }
    assert reader.spent() == {("demo", Lane.FRESH): 1}


def test_what_is_no_plan(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="actor"):
        ledger.plans.preview(PlanRequest(PlanKind.BACKFILL, spans=(span(),)), actor="", reason="so")
    with pytest.raises(InvalidInput, match="overlap"):
        preview(ledger, PlanKind.BACKFILL, spans=(span(), span(days=3)))
