"""R-CTL-3, R-CTL-5, R-CTL-8, R-CTL-11: what is carried out is what was previewed, and it is logged."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from sealbook.errors import Conflict, Drifted, IllegalMove, InvalidInput, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.states.tables import override_log
from sealbook.model import Status
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.plans import LeftOut, Plan, PlanKind, PlanRequest, PlanState, Progress
from sealbook.model.retry import Stop
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, Span
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id, until_it_waits
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
    """Days that are good, worked on or given up are left out, and counted; the cost is in requests."""
    ledger.judge([accept(key_of("a", 0))])
    open_work(ledger, [work_of(key_of("a", day)) for day in (1, 2)])
    ledger.scheduler.claim("bob", TERMS, limit=1)
    ledger.plans.carry_out(preview(ledger, PlanKind.MARK, Selection(keys=[key_of("a", 1)])).id)
    logged = len(log(ledger))
    request = PlanRequest(
        PlanKind.BACKFILL, spans=(span(), span("b", 2)), costs={AssetName("demo", "clicks"): 3}
    )
    plan, items, left_out = ledger.plans.preview(request, name="winter", **WHO)
    assert (plan.state, plan.partitions, plan.requests) == (PlanState.PREVIEWED, 9, 27)
    assert left_out == {LeftOut.GOOD: 1, LeftOut.OPEN: 1, LeftOut.STOPPED: 1}
    assert [item.key for item in items] == [key_of("a", day) for day in range(3, 10)] + [
        key_of("b", 0),
        key_of("b", 1),
    ]
    assert len(work_in(ledger)) == 2, "a preview opens nothing"
    assert len(log(ledger)) == logged
    done = ledger.plans.carry_out(plan.id)
    assert (done.state, done.name) == (PlanState.OPEN, "winter")
    rows = work_in(ledger)
    assert {key for key, row in rows.items() if row.plan_id == plan.id} == {item.key for item in items}
    assert {rows[item.key].cost for item in items} == {3}
    assert {rows[item.key].work.lane for item in items} == {Lane.BACKFILL}
    assert log(ledger)[logged:] == [("backfill", *WHO.values(), [str(item.key) for item in items])]
    assert ledger.reader.schedule.plans()[0].id == plan.id
    assert ledger.reader.schedule.plan_items(plan.id) == items


def test_force_takes_good_days_too(ledger: Ledger) -> None:
    ledger.judge([accept(key_of("a", 0))])
    assert preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),)).partitions == 1
    assert preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),), force=True).partitions == 2


def test_what_waits_for_no_other_plan_is_taken_over_and_is_ready(ledger: Ledger, clock: SetClock) -> None:
    """A day that a round opened, or whose next try is hours away; it keeps its lane, fresh before old."""
    later = clock.now + timedelta(hours=2)
    open_work(ledger, [work_of(key_of("a", 0)), work_of(key_of("a", 1), Lane.RETRY, ready_at=later)])
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=3),))
    ledger.plans.carry_out(plan.id)
    rows = work_in(ledger)
    assert {row.plan_id for row in rows.values()} == {plan.id}
    assert [rows[key_of("a", day)].work.lane for day in range(3)] == [Lane.FRESH, Lane.RETRY, Lane.BACKFILL]
    assert len(ledger.scheduler.claim("bob", TERMS, limit=9)) == 3


def test_what_was_claimed_since_the_preview_is_not_taken_over(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", 0))])
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=3),))
    ledger.scheduler.claim("bob", TERMS, limit=9)
    with pytest.raises(Drifted):
        ledger.plans.carry_out(plan.id)


def test_of_two_who_carry_out_the_same_days_at_once_one_does(ledger: Ledger) -> None:
    """What is opened anew, and what is taken over, is in one plan; the other is refused, whole."""
    open_work(ledger, [work_of(key_of("a", day)) for day in range(3)])
    plans = [preview(ledger, PlanKind.BACKFILL, spans=(span(days=6),)) for _ in range(4)]

    def carry_out(plan: Plan) -> bool:
        try:
            return ledger.plans.carry_out(plan.id).state is PlanState.OPEN
        except Drifted:
            return False

    with ThreadPoolExecutor(len(plans)) as threads:
        done = list(threads.map(carry_out, plans))
    assert done.count(True) == 1
    [winner] = [plan.id for plan, is_done in zip(plans, done, strict=True) if is_done]
    assert [row.plan_id for row in work_in(ledger).values()] == [winner] * 6
    assert len(log(ledger)) == 1


def test_what_another_takes_while_a_plan_is_carried_out_is_seen(postgresql: PostgresqlServer) -> None:
    """R-CTL-11: what is open of a plan is locked before it is compared with what was previewed."""
    url = postgresql.create_ledger()
    refused: list[Drifted] = []
    with open_ledger(url) as ledger:
        open_work(ledger, [work_of(key_of("a"))])
        plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=1),))

        def carry_out() -> None:
            try:
                ledger.plans.carry_out(plan.id)
            except Drifted as error:
                refused.append(error)

        writer = Thread(target=carry_out)
        with psycopg.connect(url) as other:
            other.execute("UPDATE work SET holder = 'bob', expires_at = now(), fence = fence + 1")
            writer.start()
            until_it_waits(ledger._database, writer)
        writer.join()
        assert len(refused) == 1
        assert work_in(ledger)[key_of("a")].plan_id is None


def test_two_plans_at_work_have_two_names(ledger: Ledger) -> None:
    def carried_out(customer: str) -> Plan:
        request = PlanRequest(PlanKind.BACKFILL, spans=(span(customer, 1),))
        return ledger.plans.carry_out(ledger.plans.preview(request, name="winter", **WHO).plan.id)

    first = carried_out("a")
    with pytest.raises(Conflict, match=f"plan {first.id} is at work under the name winter"):
        carried_out("b")
    ledger._database.write(lambda c: c.exec_driver_sql("DELETE FROM work"))
    assert carried_out("b").state is PlanState.OPEN, "the first was done"


def test_a_name_is_no_number(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="name"):
        ledger.plans.preview(PlanRequest(PlanKind.BACKFILL, spans=(span(),)), name="17", **WHO)


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
    now = "no part of it" if moved == "judged" else "never judged, open under fence 0"
    assert list(refused.value.differences) == [f"{key_of('a', 3)}: was never judged; is {now}"]
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
    assert ledger.plans.carry_out(plan.id, actor="bob").state is PlanState.DONE
    assert ledger.state(KEY).status is Status.PENDING
    assert work_in(ledger)[KEY].work.kind is WorkKind.JUDGE
    assert log(ledger) == [("requeue", "bob", WHO["reason"], [str(KEY)])], "who did it, not who previewed it"


def test_what_cannot_be_done_is_left_out_by_name(ledger: Ledger) -> None:
    ledger.judge([reject(KEY), reject(OTHER)])
    plan = preview(ledger, PlanKind.RETRY, without=(OTHER,))
    ledger.plans.carry_out(plan.id)
    assert (ledger.state(KEY).status, ledger.state(OTHER).status) == (Status.PENDING, Status.FAILED)


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


def test_what_failed_before_there_was_a_schedule_is_given_up_too(ledger: Ledger) -> None:
    ledger.judge([reject(KEY), accept(OTHER)])
    ledger._database.write(lambda c: c.exec_driver_sql("DELETE FROM work"))
    marked = preview(ledger, PlanKind.MARK)
    assert marked.partitions == 1, "what is good is not given up"
    ledger.plans.carry_out(marked.id)
    assert [each.key for each in ledger.reader.schedule.open_work(stopped=True)] == [KEY]


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
    assert ledger.plans.cancel(plan.id, **WHO).state is PlanState.CANCELLED
    assert {row.work.stop for row in work_in(ledger).values()} == {Stop.MANUAL}
    assert ledger.verdicts.judge_under([accept(key, 1) for key in held], held).states == []
    assert [(entry[0], len(entry[3])) for entry in log(ledger)] == [
        ("backfill", 10),
        ("pause", 0),
        ("resume", 0),
        ("cancel", 10),
    ]
    with pytest.raises(IllegalMove, match="cancelled"):
        ledger.plans.resume(plan.id, **WHO)


def test_what_a_cancelled_backfill_leaves_undone_stays_so_until_somebody_wants_it(ledger: Ledger) -> None:
    """A round opens what is due and has no work: a cancelled day has some, which is given up."""
    ledger.judge([accept(key_of("a", 0))])
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=3),), force=True)
    ledger.plans.carry_out(plan.id)
    ledger.plans.pause(plan.id, **WHO)
    ledger.plans.cancel(plan.id, **WHO)
    rows = work_in(ledger)
    assert rows.keys() == {key_of("a", 1), key_of("a", 2)}, "what is good is refreshed as before"
    assert {(row.stopped_by, row.paused) for row in rows.values()} == {("ann", False)}
    again = preview(ledger, PlanKind.BACKFILL, spans=(span(days=3),))
    assert again.partitions == 2
    ledger.plans.carry_out(again.id)
    assert len(ledger.scheduler.claim("bob", TERMS, limit=9)) == 2


def test_what_had_stopped_of_a_cancelled_backfill_still_says_why(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),))
    ledger.plans.carry_out(plan.id)
    parked = PartitionFailed(
        key=key_of("a"),
        run_id=run_id(1),
        attempt="1",
        failed_stage=Stage.EXTRACT,
        error_class=ErrorClass.PERMANENT,
        error="the account is disabled",
    )
    ledger.runs.tell([parked])
    ledger.plans.cancel(plan.id, **WHO)
    rows = work_in(ledger)
    assert [rows[key_of("a", day)].work.stop for day in range(2)] == [Stop.PERMANENT, Stop.MANUAL]
    assert preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),)).partitions == 1


def test_what_is_reprocessed_does_not_wait_with_a_paused_backfill(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),))
    ledger.plans.carry_out(plan.id)
    ledger.judge([reject(key_of("a"))])
    ledger.plans.pause(plan.id, **WHO)
    ledger.plans.carry_out(preview(ledger, PlanKind.REPROCESS, Selection(keys=[key_of("a")])).id)
    assert [claim.key for claim in ledger.scheduler.claim("bob", TERMS, limit=9)] == [key_of("a")]


def test_what_is_fetched_of_a_cancelled_backfill_is_judged_and_loaded(ledger: Ledger) -> None:
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=2),))
    ledger.plans.carry_out(plan.id)
    ledger.judge([accept(key_of("a", 0))])
    ledger.plans.cancel(plan.id, **WHO)
    [claim] = ledger.scheduler.claim("bob", TERMS, limit=9)
    assert (claim.key, claim.kind) == (key_of("a", 0), WorkKind.LOAD)


def test_a_cancelled_reprocessing_leaves_what_there_was(ledger: Ledger) -> None:
    ledger.judge([accept(KEY), accept(OTHER)])
    plan = preview(ledger, PlanKind.REPROCESS)
    ledger.plans.carry_out(plan.id)
    ledger.plans.cancel(plan.id, **WHO)
    assert work_in(ledger) == {}


def test_what_failed_of_a_backfill_is_taken_up_again(ledger: Ledger) -> None:
    """It stays a part of the backfill: what waits for another try, and what has stopped."""
    plan = preview(ledger, PlanKind.BACKFILL, spans=(span(days=4),))
    ledger.plans.carry_out(plan.id)
    rejected, marked = key_of("a", 0), key_of("a", 1)
    ledger.judge([reject(rejected)])
    ledger.plans.carry_out(preview(ledger, PlanKind.MARK, Selection(keys=[marked])).id)
    logged = len(log(ledger))
    assert ledger.plans.retry_failed(plan.id, dry_run=True, **WHO) == [rejected, marked]
    assert (len(log(ledger)), ledger.reader.schedule.progress(plan.id).stopped) == (logged, 1)
    assert ledger.plans.retry_failed(plan.id, **WHO) == [rejected, marked]
    assert ledger.reader.schedule.progress(plan.id) == Progress(4, 0, 0)
    assert len(ledger.scheduler.claim("bob", TERMS, limit=9)) == 4
    assert log(ledger)[logged:] == [("clear", *WHO.values(), [str(rejected), str(marked)])]
    assert ledger.plans.retry_failed(plan.id, **WHO) == [], "nothing has failed since"


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
