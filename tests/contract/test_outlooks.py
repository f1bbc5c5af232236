"""R-CTL-2, R-CTL-5, R-CTL-7: what is done next, when and why, who stopped or paused it, who is at it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sealbook.errors import QuotaScope
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import PartitionKey, RunId
from sealbook.model.failures import ErrorClass
from sealbook.model.outlook import Outlook, Prospect
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.plans import PlanKind, PlanRequest
from sealbook.model.retry import Cause, Jitter, Retries, RetryPolicies
from sealbook.model.selection import Selection
from sealbook.model.universe import Span
from sealbook.model.work import Lane, WorkKind
from sealbook.status.outlooks import Outlooks
from tests.support.commands import check_command
from tests.support.ledger import reject, run_id
from tests.support.schedule import NOW, SetClock, key_of, open_work, work_of

KEY, OTHER = key_of("a"), key_of("b")
RETRIES = RetryPolicies(Retries(jitter=Jitter.NONE, max_attempts=2))
WHO: dict[str, Any] = {"actor": "ann", "reason": "to see"}


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time."""
    return SetClock()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock, retries=RETRIES) as opened:
        yield opened


def fail(ledger: Ledger, run: int = 1, error_class: ErrorClass = ErrorClass.TRANSIENT, **more: Any) -> None:
    fact = PartitionFailed(
        key=KEY, run_id=run_id(run), attempt="1", failed_stage=Stage.EXTRACT, error_class=error_class,
        error=f"{KEY}: no answer", **more,
    )  # fmt: skip
    ledger.runs.tell([fact])


def outlook(ledger: Ledger, key: PartitionKey = KEY) -> Outlook:
    found = Outlooks(ledger.reader.schedule, ledger.reader.now()).of(key)
    assert found is not None
    for way in found.ways:
        check_command(way.command)
    return found


def test_where_nothing_is_open_there_is_none(ledger: Ledger) -> None:
    outlooks = Outlooks(ledger.reader.schedule, NOW)
    assert outlooks.of(KEY) is None
    open_work(ledger, [work_of(OTHER)])
    assert outlooks.of_all([]) == {}
    [(_, none), (_, some)] = outlooks.beside([work_of(KEY), work_of(OTHER)])
    assert (none, some is None) == (None, False)


def test_a_failure_waits_and_is_then_ready(ledger: Ledger, clock: SetClock) -> None:
    fail(ledger)
    found = outlook(ledger)
    at = NOW + timedelta(minutes=5)
    assert (found.prospect, found.next_run_at, found.lane) == (Prospect.WAITING, at, Lane.RETRY)
    assert (found.tries, found.failing_since, found.cause) == (1, NOW, Cause.TRANSIENT)
    assert found.why == "1 failure in a row, the last transient"
    assert found.in_short == "retry 03-01 06:05"
    assert found.sentence == (
        "From 2026-03-01 06:05 UTC on a control loop fetches it, in lane retry:"
        " 1 failure in a row, the last transient."
    )
    clock.now = at
    found = outlook(ledger)
    assert (found.prospect, found.in_short) == (Prospect.READY, "retry now")
    assert found.sentence.startswith("In its next round a control loop fetches it, in lane retry: 1 failure")


def test_too_many_failures_are_terminal(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-5."""
    fail(ledger, 1)
    clock.move(hours=1)
    fail(ledger, 2)
    found = outlook(ledger)
    assert (found.prospect, found.next_run_at, found.since, found.by) == (
        Prospect.TERMINAL, None, clock.now, None,
    )  # fmt: skip
    assert found.sentence == (
        "Nothing by itself: it is given up since 2026-03-01 07:00 UTC:"
        " 2 failures in a row, which is max_attempts."
    )
    [way] = found.ways
    assert way.command == f"sealbook state terminal clear {KEY} --reason '…'"


def test_what_somebody_gave_up_says_who_and_why(ledger: Ledger) -> None:
    """R-CTL-5."""
    fail(ledger)
    request = PlanRequest(PlanKind.MARK, Selection(keys=[KEY]))
    plan = ledger.plans.preview(request, actor="ann", reason="the source lost it").plan
    ledger.plans.carry_out(plan.id)
    found = outlook(ledger)
    assert (found.prospect, found.by, found.why) == (Prospect.TERMINAL, "ann", "the source lost it")
    assert found.sentence == (
        "Nothing by itself: it is given up by ann since 2026-03-01 06:00 UTC: the source lost it."
    )


def test_a_permanent_failure_is_parked_and_says_what_it_was(ledger: Ledger) -> None:
    fail(ledger, error_class=ErrorClass.PERMANENT)
    found = outlook(ledger)
    assert (found.prospect, found.in_short, found.next_run_at) == (Prospect.PARKED, "parked", None)
    assert found.sentence == (
        "Nothing by itself: it is parked since 2026-03-01 06:00 UTC:"
        " it fails until an operator or the configuration changes something (no answer)."
    )


def test_who_is_at_it_until_the_lease_runs_out(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-4."""
    open_work(ledger, [work_of(KEY)])
    claims = ledger.scheduler.claim("loop-1", Terms(["demo"]), limit=1, lease=timedelta(minutes=5))
    found = outlook(ledger)
    assert (found.prospect, found.by, found.since, found.until) == (
        Prospect.HELD, "loop-1", NOW, claims.expires_at,
    )  # fmt: skip
    assert found.sentence == (
        "loop-1 has been at it since 2026-03-01 06:00 UTC: it fetches it,"
        " under a lease until 2026-03-01 06:05 UTC."
    )
    clock.now = claims.expires_at
    assert outlook(ledger).prospect is Prospect.READY


@pytest.mark.parametrize(
    ("scope", "pausing", "resume"),
    [
        (Scope("demo"), {KEY, OTHER}, "--source demo"),
        (Scope("demo", "a"), {KEY}, "--source demo --customer-id a"),
        (Scope("demo", None, "clicks"), {KEY, OTHER}, "--source demo --query-name clicks"),
        (Scope("demo", "a", "others"), set(), ""),
        (Scope("others"), set(), ""),
    ],
    ids=["source", "customer", "query", "another query", "another source"],
)
def test_a_pause_holds_back_its_scope_and_says_whose_it_is(
    ledger: Ledger, scope: Scope, pausing: set[PartitionKey], resume: str
) -> None:
    open_work(ledger, [work_of(KEY), work_of(OTHER)])
    ledger.pauses.pause(scope, **WHO)
    for key in (KEY, OTHER):
        found = outlook(ledger, key)
        assert found.prospect is (Prospect.PAUSED if key in pausing else Prospect.READY)
        if key in pausing:
            assert (found.by, found.why, found.since, found.next_run_at) == ("ann", "to see", NOW, None)
            [way] = found.ways
            assert way.command == f"sealbook state resume {resume} --reason '…'"


def test_of_several_pauses_the_longest_counts(ledger: Ledger) -> None:
    open_work(ledger, [work_of(KEY)])
    fail(ledger, error_class=ErrorClass.QUOTA, retry_after=600, quota_scope=QuotaScope.SOURCE)
    found = outlook(ledger)
    ends = NOW + timedelta(seconds=600)
    assert (found.prospect, found.by, found.until, found.next_run_at) == (
        Prospect.PAUSED, "demo", ends, ends,
    )  # fmt: skip
    assert found.in_short == "paused until 03-01 06:10"
    ledger.pauses.pause(Scope("demo", "a"), **WHO, until=NOW + timedelta(hours=1))
    assert outlook(ledger).by == "ann"
    ledger.pauses.pause(Scope("demo"), actor="bob", reason="for good")
    assert (outlook(ledger).by, outlook(ledger).in_short) == ("bob", "paused")


def test_a_backfill_says_its_name_and_whether_it_is_paused(ledger: Ledger) -> None:
    span = Span("demo", "a", "clicks", KEY.logical_date, KEY.logical_date)
    request = PlanRequest(PlanKind.BACKFILL, spans=(span,))
    plan = ledger.plans.preview(request, name="winter", **WHO).plan
    ledger.plans.carry_out(plan.id)
    found = outlook(ledger)
    assert (found.prospect, found.lane, found.why) == (
        Prospect.READY, Lane.BACKFILL, "backfill winter asks for it",
    )  # fmt: skip
    assert found.plan_id == plan.id
    ledger.plans.pause(plan.id, **WHO)
    found = outlook(ledger)
    assert (found.prospect, found.why) == (Prospect.PAUSED, "backfill winter is paused")
    [way] = found.ways
    assert way.command == "sealbook backfill resume winter --reason '…'"


def test_each_kind_says_what_it_waits_for(ledger: Ledger) -> None:
    def why(lane: Lane, kind: WorkKind = WorkKind.FETCH, run: RunId | None = None) -> str:
        open_work(ledger, [work_of(KEY, lane, kind=kind, run_id=run)])
        return outlook(ledger).why

    assert why(Lane.FRESH) == "it is due"
    assert why(Lane.REFRESH) == "it is due again"
    assert why(Lane.BACKFILL) == "its day is missing"
    assert why(Lane.RETRY) == "an operator asked for it"
    assert why(Lane.RETRY, WorkKind.JUDGE, run_id(3)) == f"run {run_id(3)} is sealed and not judged"
    assert why(Lane.FRESH, WorkKind.LOAD, run_id(3)) == f"run {run_id(3)} is accepted and not loaded"


def test_a_rejection_says_what_was_wrong(ledger: Ledger) -> None:
    ledger.judge([reject(KEY, 1, error="12 rows have no date")])
    found = outlook(ledger)
    assert (found.prospect, found.run_id) == (Prospect.WAITING, run_id(1))
    assert (found.error, found.cause) == ("12 rows have no date", Cause.REJECTED)
    assert [way.command for way in found.ways] == [f"sealbook state retry {KEY} --reason '…'"]
