"""Runs as the ledger keeps them: opened, numbered and ended in one order (R-RUN-2, R-RUN-3)."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from ulid import ULID

from sealbook.errors import IllegalMove, InvalidInput, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.audit import Action
from sealbook.model import PartitionKey, RunEvent, RunId, RunStatus, StepStatus, Verdict
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage, read_fact
from sealbook.model.selection import Selection
from sealbook.model.step_events import step_completed
from sealbook.status.verify import verify_ledger
from tests.support.pointers import load

DAY = date(2026, 1, 1)
PLAN = Selection(source="demo", customers=["a", "b"], queries="clicks", since=DAY, until=DAY)
A, B = PLAN.expand()
NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def sealed(key: PartitionKey, run: RunId) -> RunEvent:
    return PartitionSealed(
        key=key, run_id=run, schema_version="1", record_count=1, payload_bytes=2,
        payload_sha256="a" * 64, query_hash="b" * 64, extracted_at=NOW,
    ).to_event()  # fmt: skip


def failed(key: PartitionKey, run: RunId, attempt: int = 1, stage: Stage = Stage.EXTRACT) -> RunEvent:
    return PartitionFailed(
        key=key, run_id=run, attempt=str(attempt),
        failed_stage=stage, error_class=ErrorClass.TRANSIENT, error="gone",
    ).to_event()  # fmt: skip


def accept(key: PartitionKey, run: RunId) -> Verdict:
    return Verdict.accept(key, run, schema_version="1", record_count=10, validator_version="v")


def reject(key: PartitionKey, run: RunId, again: str | None = None) -> Verdict:
    return Verdict.reject(key, run, error_message="bad", validator_version="v", revalidation_id=again)


def extracted(ledger: Ledger, events: Iterable[tuple[PartitionKey, bool]] = ((A, True), (B, True))) -> RunId:
    """Open a run that sets out to do PLAN, and seal some of it, or fail to."""
    run = ledger.open_run()
    [number] = ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN]).values()
    ledger.run_store.append_events(sealed(key, run) if good else failed(key, run) for key, good in events)
    ledger.run_store.append_event(step_completed(run, Stage.EXTRACT, attempt=number))
    return run


def status(ledger: Ledger, run: RunId) -> RunStatus:
    ledger.runs.end_runs([run])
    snapshot = ledger.run_store.project_snapshot(run)
    assert snapshot.inconsistent == ()
    return snapshot.status


def test_a_run_is_newer_than_every_run_that_is_known(ledger_url: str) -> None:
    """R-RUN-2: a machine whose clock is slow cannot make an old run, and no two are alike."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        first, second = ledger.open_run(), ledger.open_run()
        assert first < second
        clock.now = NOW - timedelta(days=400)
        third = ledger.open_run()
        assert second < third
        clock.now = NOW + timedelta(hours=1)
        fourth = ledger.open_run()
        assert ULID.from_str(fourth).datetime == clock.now
        assert ledger.run_store.project_snapshot(first).status is RunStatus.PENDING


def test_runs_that_are_judged_or_retired_are_known_too(ledger_url: str) -> None:
    """R-RUN-2: whichever way the ledger heard of a run."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        ahead = RunId(str(ULID.from_datetime(NOW + timedelta(minutes=4))))
        ledger.judge([reject(A, ahead)])
        assert ledger.open_run() > ahead
        later = extracted(ledger, [(A, False), (B, False)])
        assert status(ledger, later) is RunStatus.FAILED
        ledger.run_store.retire_run(later, actor="ann", reason="old")
        assert ledger.open_run() > later


def test_runs_of_another_engine_and_of_the_future_lend_no_order(ledger_url: str) -> None:
    """R-RUN-2: an id that is no ULID, or from the future, does not make our runs so."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        for run in ("01M", "01KZZ", "run-1", str(ULID.from_datetime(NOW + timedelta(days=900)))):
            ledger.run_store.append_event(RunEvent.new(run, "RunStarted"))
        made = ledger.open_run()
        assert ULID.from_str(made).datetime == NOW


def test_runs_that_are_opened_at_once_all_differ(ledger_url: str) -> None:
    """R-RUN-2: also when the clock stands still."""
    with open_ledger(ledger_url, clock=Clock()) as ledger, ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: ledger.open_run(), range(40)))
    assert len(set(runs)) == len(runs)


def test_steps_are_numbered_and_the_first_starts_the_run(ledger: Ledger) -> None:
    run = ledger.open_run()
    assert ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN]) == {run: 1}
    assert ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN]) == {run: 2}
    assert ledger.runs.open_steps(Stage.LOAD, [run]) == {run: 1}
    snapshot = ledger.run_store.project_snapshot(run)
    assert (snapshot.status, snapshot.inconsistent) == (RunStatus.RUNNING, ())
    assert [each.status for each in snapshot.steps["extract"].attempts] == [StepStatus.RUNNING] * 2


def test_commands_at_once_on_one_run_get_attempts_of_their_own(ledger: Ledger) -> None:
    """Else the second would be taken for the first, and what it says be lost."""
    run = ledger.open_run()
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: ledger.runs.open_steps(Stage.VALIDATE, [run])[run], range(16)))
    assert sorted(opened) == list(range(1, 17))
    assert ledger.run_store.project_snapshot(run).inconsistent == ()


def test_a_run_that_has_ended_has_no_further_steps(ledger: Ledger) -> None:
    run = extracted(ledger, [(A, False), (B, False)])
    assert status(ledger, run) is RunStatus.FAILED
    assert ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN]) == {}
    assert ledger.runs.end_runs([run]) == {}


def test_a_run_ends_once_each_partition_that_it_set_out_to_do_has_ended(ledger: Ledger) -> None:
    """R-RUN-3: a run that published only some of its partitions so far is RUNNING."""
    run = extracted(ledger)
    assert status(ledger, run) is RunStatus.RUNNING
    ledger.judge([accept(A, run)])
    assert status(ledger, run) is RunStatus.RUNNING
    load(ledger)
    assert status(ledger, run) is RunStatus.RUNNING
    ledger.judge([reject(B, run)])
    assert status(ledger, run) is RunStatus.COMPLETED


def test_what_was_planned_and_never_heard_of_again_keeps_a_run_open(ledger: Ledger) -> None:
    """R-RUN-3: the extraction was killed before it came to B."""
    run = extracted(ledger, [(A, True)])
    ledger.judge([accept(A, run)])
    load(ledger)
    assert status(ledger, run) is RunStatus.RUNNING
    ledger.run_store.append_event(failed(B, run, 2))
    assert status(ledger, run) is RunStatus.COMPLETED


def test_a_failed_extraction_that_is_tried_again_is_not_the_end_of_a_partition(ledger: Ledger) -> None:
    run = extracted(ledger, [(A, True), (B, False)])
    ledger.judge([accept(A, run)])
    ledger.run_store.append_event(sealed(B, run))
    load(ledger)
    assert status(ledger, run) is RunStatus.RUNNING
    ledger.judge([accept(B, run)])
    load(ledger)
    assert status(ledger, run) is RunStatus.COMPLETED


@pytest.mark.parametrize("good", [False, True])
def test_a_run_of_which_nothing_was_accepted_has_failed(ledger: Ledger, good: bool) -> None:
    """R-RUN-3: FAILED if none of it was accepted, be it sealed or not."""
    run = extracted(ledger, [(A, good), (B, False)])
    if good:
        ledger.judge([reject(A, run)])
    assert status(ledger, run) is RunStatus.FAILED


def test_a_newer_run_that_is_accepted_ends_an_older_one(ledger: Ledger) -> None:
    """R-RUN-3: superseded, it will not be published by itself; accepted it was."""
    run = extracted(ledger, [(A, True), (B, False)])
    ledger.judge([accept(A, run)])
    newer = ledger.open_run()
    ledger.judge([accept(A, newer)])
    assert status(ledger, run) is RunStatus.COMPLETED


def test_what_cannot_be_staged_ends_a_partition(ledger: Ledger) -> None:
    run = extracted(ledger, [(A, True), (B, False)])
    ledger.judge([accept(A, run)])
    ledger.run_store.append_event(failed(A, run, 1, Stage.LOAD))
    assert status(ledger, run) is RunStatus.COMPLETED


def test_a_run_that_others_sealed_ends_with_what_the_log_knows_of_it(ledger: Ledger) -> None:
    """No extraction said what the run set out to do: it is what was judged of it."""
    run = ledger.open_run()
    ledger.runs.open_steps(Stage.VALIDATE, [run])
    ledger.judge([accept(A, run), reject(B, run)])
    assert status(ledger, run) is RunStatus.RUNNING
    load(ledger)
    assert status(ledger, run) is RunStatus.COMPLETED


def test_what_another_engine_says_in_the_same_run_is_no_hindrance(ledger: Ledger) -> None:
    """Its steps and partitions are its own: the run ends by ours, and the ledger is verified by our facts."""
    run = extracted(ledger, [(A, True), (B, False)])
    theirs = [
        RunEvent.new(run, "StepStarted", "extract", "theirs", event_data=["anything"]),
        RunEvent.new(run, "AssetObserved", partition="their partition 7"),
    ]
    ledger.run_store.append_events(theirs)
    ledger.judge([accept(A, run)])
    load(ledger)
    assert status(ledger, run) is RunStatus.COMPLETED
    assert list(verify_ledger(ledger.reader)) == []


def test_a_run_that_is_stopped_on_purpose_is_cancelled(ledger: Ledger) -> None:
    """R-RUN-3: what it had yet to do is cancelled; what it published stays so."""
    run = extracted(ledger)
    ledger.judge([accept(A, run)])
    load(ledger)
    assert ledger.runs.cancel_run(run, actor="ann", reason="no longer wanted", dry_run=True) == [B]
    assert ledger.run_store.project_snapshot(run).status is RunStatus.RUNNING
    assert ledger.runs.cancel_run(run, actor="ann", reason="no longer wanted") == [B]
    [logged] = ledger.reader.override_log.entries()
    assert (logged.action, logged.actor, logged.reason) == (Action.CANCEL, "ann", "no longer wanted")
    assert (logged.keys, logged.run_id) == ((B,), run)
    snapshot = ledger.run_store.project_snapshot(run)
    assert (snapshot.status, snapshot.error) == (RunStatus.CANCELLED, "stopped by ann: no longer wanted")
    assert snapshot.counters.partitions_cancelled == 1
    with pytest.raises(IllegalMove, match="CANCELLED"):
        ledger.runs.cancel_run(run, actor="ann", reason="once more")


def test_who_cancels_what_and_why_must_be_said(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="no run"):
        ledger.runs.cancel_run(RunId(str(ULID())), actor="ann", reason="x")
    with pytest.raises(InvalidInput, match="reason"):
        ledger.runs.cancel_run(ledger.open_run(), actor="ann", reason=" ")


def test_two_commands_at_one_run_leave_its_log_consistent(ledger: Ledger) -> None:
    """The first to end finds nothing left to do and ends the run; the second has nothing to say any more."""
    run = extracted(ledger)
    ledger.judge([accept(A, run), accept(B, run)])
    first, second = (ledger.runs.open_steps(Stage.LOAD, [run]) for _ in range(2))
    load(ledger)
    ledger.runs.close_steps(Stage.LOAD, first)
    assert status(ledger, run) is RunStatus.COMPLETED
    ledger.runs.close_steps(Stage.LOAD, second)
    snapshot = ledger.run_store.project_snapshot(run)
    assert snapshot.inconsistent == ()
    assert [each.status for each in snapshot.steps["load"].attempts] == [
        StepStatus.SUCCESS,
        StepStatus.FAILED,
    ]
    assert "the run ended without it" in str(snapshot.steps["load"].latest.error)


def test_many_commands_end_a_run_once(ledger: Ledger) -> None:
    """R-RUN-3: whichever commands did the work, the end is one event, and nothing is inconsistent."""
    run = extracted(ledger)
    ledger.judge([accept(A, run), accept(B, run)])

    def finish(number: int) -> object:
        if number == 0:
            load(ledger)
        return ledger.runs.end_runs([run])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(finish, range(8)))
    assert status(ledger, run) is RunStatus.COMPLETED
    ends = [each for each in ledger.run_store.fetch_events(run) if each.event_type == "RunCompleted"]
    assert len(ends) == 1


def test_counters_count_partitions_and_not_tellings(ledger: Ledger) -> None:
    """A failure that is made good, a run judged again and one published again: each partition counts once."""
    run = ledger.open_run()
    ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN])

    def tell(key: PartitionKey, attempt: int, *, good: bool, stage: Stage = Stage.EXTRACT) -> None:
        event = sealed(key, run) if good else failed(key, run, attempt, stage)
        fact = read_fact(event)
        assert isinstance(fact, PartitionSealed | PartitionFailed)
        ledger.runs.tell([fact])

    def counted() -> dict[str, int]:
        snapshot = ledger.run_store.project_snapshot(run)
        assert snapshot.inconsistent == ()
        names = {"sealed", "failed", "accepted", "rejected", "published"}
        counts = snapshot.counters.by_name()
        return {name: counts[f"partitions_{name}"] for name in names if counts[f"partitions_{name}"]}

    tell(A, 1, good=False)
    tell(B, 1, good=True)
    assert counted() == {"sealed": 1, "failed": 1}
    tell(A, 2, good=False)
    tell(B, 2, good=True)
    assert counted() == {"sealed": 1, "failed": 1}
    tell(A, 3, good=True)
    tell(A, 4, good=True)
    assert counted() == {"sealed": 2}
    ledger.judge([accept(A, run), accept(B, run)])
    assert counted() == {"sealed": 2, "accepted": 2}
    ledger.judge([reject(B, run, again="r1")])
    assert counted() == {"sealed": 2, "accepted": 1, "rejected": 1}
    ledger.judge([reject(B, run, again="r2")])
    assert counted() == {"sealed": 2, "accepted": 1, "rejected": 1}
    tell(A, 1, good=False, stage=Stage.LOAD)
    assert counted() == {"sealed": 2, "accepted": 1, "rejected": 1, "failed": 1}
    load(ledger)
    assert counted() == {"sealed": 2, "accepted": 1, "rejected": 1, "published": 1}
    ledger.judge([reject(A, run, again="r3")])
    load(ledger)
    ledger.judge(
        [
            Verdict.accept(
                A, run, schema_version="1", record_count=10, validator_version="v", revalidation_id="r4"
            )
        ]
    )
    load(ledger)
    assert counted() == {"sealed": 2, "accepted": 1, "rejected": 1, "published": 1}


def test_a_run_whose_work_could_not_begin_has_failed(ledger: Ledger) -> None:
    """R-RUN-3: there is nothing to go on with; its step and its end say why."""
    run = ledger.open_run()
    ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN])
    assert ledger.runs.fail_to_begin(run, "no Java") is RunStatus.FAILED
    snapshot = ledger.run_store.project_snapshot(run)
    assert (snapshot.status, snapshot.error, snapshot.inconsistent) == (RunStatus.FAILED, "no Java", ())
    assert snapshot.steps["extract"].latest.error == "no Java"
    assert ledger.runs.fail_to_begin(run, "no Java") is None


def test_a_run_with_work_behind_it_goes_on_though_it_could_not_begin_again(ledger: Ledger) -> None:
    """R-RUN-3: what was sealed, told or not, is judged and loaded as part of it."""
    told, untold = extracted(ledger), ledger.open_run()
    attempts = ledger.runs.open_steps(Stage.EXTRACT, [untold], [PLAN])
    ledger.runs.close_steps(Stage.EXTRACT, attempts, "stopped")
    for run in (told, untold):
        ledger.runs.open_steps(Stage.EXTRACT, [run], [PLAN])
        assert ledger.runs.fail_to_begin(run, "no Java") is None
        assert ledger.run_store.project_snapshot(run).status is RunStatus.RUNNING
