"""The retry contract, statement by statement, as far as pure functions decide it.

Those about storage, the ledger and commands are proved where these are: `test_retry_reprocessing` says where,
statement by statement. That no partition is retried twice at once, `test_control_faults` proves.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sealbook.errors import IllegalMove
from sealbook.model import Outcome, PartitionState, Status, next_state
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFact, PartitionJudged
from sealbook.model.partition_fold import FoldedPartition, fold_fact
from sealbook.model.retry import Cause, Failing, Jitter, Retries, RunNow, Stop, Stopped, Wait, decide
from sealbook.model.shares import DEFAULT_SHARES, Flow, Shares
from sealbook.model.state import Reprocess, Requeue
from sealbook.model.status import Availability
from sealbook.model.work import Lane, Standing, Work, WorkKind, mark_terminal, next_work
from tests.support.ledger import KEY, accept, reject, run_id
from tests.support.partition_facts import accepted, failed, published, rejected, requeued, sealed

START = datetime(2026, 1, 2, tzinfo=UTC)
"""The end of the partition's day."""
RETRIES = Retries(jitter=Jitter.NONE, max_attempts=3, max_age=timedelta(days=10))
STEP = timedelta(minutes=1)


class Partition:
    """A partition that is taken through facts, one a minute, as the ledger folds them."""

    def __init__(self, lane: Lane = Lane.FRESH) -> None:
        self.at = START
        self.folded = FoldedPartition.unknown(KEY)
        self.work: Work | None = Work(KEY, lane, WorkKind.FETCH, START)

    @property
    def state(self) -> PartitionState:
        return self.folded.state

    @property
    def open_work(self) -> Work:
        assert self.work is not None
        return self.work

    def tell(self, *facts: PartitionFact) -> Partition:
        for fact in facts:
            self.at += STEP
            self.folded = fold_fact(self.folded, fact, self.at)
            self.work = next_work(self.work, fact, self._standing(), RETRIES, self.at)
        return self

    def _standing(self) -> Standing:
        state, pointer = self.state, self.folded.published
        authority = state.current_run_id if state.status is Status.SUCCESS else None
        if pointer is None:
            return Standing(authority, Availability.NONE)
        is_newest = pointer.run_id == authority
        return Standing(authority, Availability.PUBLISHED if is_newest else Availability.BEHIND)


def good(run: int = 1) -> Partition:
    return Partition().tell(sealed(run), accepted(run), published(run))


# 1. Definition of retry


def test_1_a_retry_operates_on_a_logical_partition() -> None:
    assert Partition().tell(failed(1)).open_work.key == KEY


def test_1_each_retry_produces_a_new_run() -> None:
    """A retry is a fetch, which a run that is there already does not answer: it names the newest so far."""
    work = Partition().tell(sealed(1), rejected(1)).open_work
    assert (work.kind, work.run_id) == (WorkKind.FETCH, run_id(1))


def test_1_the_entire_partition_is_extracted_and_judged_again() -> None:
    partition = Partition().tell(sealed(1), rejected(1))
    assert partition.open_work.kind is WorkKind.FETCH
    assert partition.tell(sealed(2)).open_work.kind is WorkKind.JUDGE


def test_1_only_a_verdict_marks_success_or_failed() -> None:
    assert Partition().tell(failed(1), failed(2)).state.status is Status.PENDING
    assert Partition().tell(sealed(1)).state.status is Status.PENDING


# 2. State transitions


def test_2_pending_to_success_on_acceptance() -> None:
    state = Partition().tell(sealed(1), accepted(1)).state
    assert (state.status, state.current_run_id) == (Status.SUCCESS, run_id(1))


def test_2_pending_to_failed_on_rejection_with_current_run_unchanged() -> None:
    state = Partition().tell(sealed(1), rejected(1)).state
    assert (state.status, state.current_run_id) == (Status.FAILED, None)


def test_2_failed_to_pending_is_never_automatic() -> None:
    """Of all facts only a requeue, which somebody asked for, makes a failed partition pending."""
    for fact in (sealed(2), failed(2), failed(2, ErrorClass.QUOTA), rejected(1, again="x")):
        partition = Partition().tell(sealed(1), rejected(1), fact)
        assert partition.state.status is Status.FAILED
    assert Partition().tell(sealed(1), rejected(1), requeued(1)).state.status is Status.PENDING


def test_2_only_what_has_failed_can_be_requeued() -> None:
    for state in (good().state, PartitionState.pending(KEY)):
        with pytest.raises(IllegalMove):
            next_state(state, Requeue(), START)


def test_2_failed_to_failed_counts_attempts_and_stays_failed() -> None:
    state = Partition().tell(sealed(1), rejected(1), sealed(2), rejected(2)).state
    assert (state.status, state.attempt_count) == (Status.FAILED, 2)


def test_2_terminal_is_a_designation_and_no_status() -> None:
    partition = Partition().tell(sealed(1), rejected(1), sealed(2), rejected(2), sealed(3), rejected(3))
    assert partition.open_work.stop is Stop.MAX_ATTEMPTS
    assert partition.state.status is Status.FAILED


def test_2_success_is_terminal_unless_an_operator_reprocesses() -> None:
    partition = good()
    assert partition.work is None
    assert next_state(partition.state, Reprocess(), START) == partition.state


@pytest.mark.parametrize(("outcome", "current"), [(Outcome.ACCEPTED, 2), (Outcome.REJECTED, 1)])
def test_2_a_reprocessing_replaces_the_run_or_leaves_the_success_intact(
    outcome: Outcome, current: int
) -> None:
    partition = good(1)
    verdict = accepted(2) if outcome is Outcome.ACCEPTED else rejected(2)
    partition.tell(sealed(2), verdict)
    assert (partition.state.status, partition.state.current_run_id) == (Status.SUCCESS, run_id(current))
    assert partition.folded.published is not None
    assert partition.folded.published.run_id == run_id(1)


# 3. Attempt semantics


def test_3_attempt_count_goes_up_on_every_verdict_and_on_nothing_else() -> None:
    partition = Partition()
    facts = [failed(1), sealed(2), rejected(2), requeued(2), rejected(2, again="x"), sealed(3), accepted(3)]
    counts = [partition.tell(fact).state.attempt_count for fact in facts]
    assert counts == [0, 0, 1, 1, 2, 2, 3]


def test_3_attempt_count_never_resets_though_failures_in_a_row_do() -> None:
    partition = Partition().tell(sealed(1), rejected(1), requeued(1))
    assert (partition.open_work.tries, partition.state.attempt_count) == (0, 1)
    partition.tell(accepted(1, again="x"), published(1), sealed(2), rejected(2))
    assert (partition.open_work.tries, partition.state.attempt_count) == (1, 3)


# 4. Backoff semantics


def test_4_backoff_goes_up_to_a_cap_by_the_recommended_steps() -> None:
    policy = Retries(jitter=Jitter.NONE)
    failing = [Failing(KEY, tries, Cause.TRANSIENT, START, "run") for tries in (1, 2, 3, 4, 9)]
    waits = [decide(each, policy, START) for each in failing]
    assert [each.until - START for each in waits if isinstance(each, Wait)] == [
        timedelta(minutes=5),
        timedelta(minutes=30),
        timedelta(hours=2),
        timedelta(hours=2),
        timedelta(hours=2),
    ]


def test_4_backoff_has_jitter_by_default() -> None:
    waits = {decide(Failing(KEY, 1, Cause.TRANSIENT, START, str(run)), Retries(), START) for run in range(20)}
    assert len(waits) == 20


def test_4_the_schedule_lies_outside_the_state() -> None:
    """Backoff changes nothing that PartitionState has: it records outcomes."""
    assert "ready_at" in Work.__dataclass_fields__
    assert not {"ready_at", "next_run_at", "lane"} & set(PartitionState._fields)


@pytest.mark.parametrize(
    "changed",
    [{"tries": 2}, {"at": START + STEP}, {"cause": Cause.PERMANENT}],
    ids=["attempts", "time of the last", "error"],
)
def test_4_the_decision_asks_for_attempts_their_time_and_their_error(changed: dict[str, object]) -> None:
    failing = Failing(KEY, 1, Cause.TRANSIENT, START, "run")
    other = replace(failing, **changed)  # type: ignore[arg-type]
    assert decide(failing, RETRIES, START) != decide(other, RETRIES, START)


# 5. Termination semantics


def test_5_retries_stop_at_success() -> None:
    partition = Partition().tell(sealed(1), rejected(1), sealed(2), accepted(2))
    assert partition.open_work.kind is WorkKind.LOAD
    assert partition.tell(published(2)).work is None


def test_5_retries_stop_at_max_attempts() -> None:
    partition = Partition().tell(failed(1), failed(2))
    assert partition.open_work.stop is None
    assert partition.tell(failed(3)).open_work.stop is Stop.MAX_ATTEMPTS


def test_5_retries_stop_past_max_age() -> None:
    late = START + timedelta(days=10)
    assert decide(Failing(KEY, 1, Cause.TRANSIENT, late, "run"), RETRIES, late) == Stopped(
        Stop.MAX_AGE, "its day would be older than max_age, 10 days, 0:00:00"
    )


def test_5_a_manual_marker_stops_retries_and_a_failure_does_not_take_it_away() -> None:
    partition = Partition().tell(failed(1))
    partition.work = mark_terminal(partition.open_work)
    assert partition.tell(failed(2)).open_work.stop is Stop.MANUAL


def test_5_every_terminal_failure_says_which_policy_ended_it() -> None:
    assert {stop for stop in Stop if stop.terminal} == {
        Stop.MAX_ATTEMPTS, Stop.MAX_AGE, Stop.MANUAL, Stop.PAST_HORIZON,
    }  # fmt: skip


def test_5_validators_ignore_terminality() -> None:
    """A verdict about a terminal partition is taken like any other."""
    partition = Partition().tell(sealed(1), rejected(1))
    partition.work = mark_terminal(partition.open_work)
    partition.tell(sealed(2), accepted(2))
    assert partition.state.status is Status.SUCCESS
    assert (partition.open_work.kind, partition.open_work.stop) == (WorkKind.LOAD, None)


# 6. Backfill interaction


def test_6_backfill_follows_the_same_retry_policy() -> None:
    fresh, backfill = Partition(Lane.FRESH), Partition(Lane.BACKFILL)
    for fact in (failed(1), sealed(2), rejected(2), failed(3)):
        assert fresh.tell(fact).open_work == replace(backfill.tell(fact).open_work, lane=fresh.open_work.lane)
    assert fresh.state == backfill.state


def test_6_backfill_never_starves_fresh_work() -> None:
    shares = Shares[str]()
    for number in range(10_000):
        shares.add(Flow(Lane.BACKFILL, "ads", f"c{number % 100}"), number, "old")
    for number in range(40):
        shares.add(Flow(Lane.FRESH, "ads", "c1"), number, "new")
    served = [claimed.items[0] for _ in range(60) if (claimed := shares.take(lambda _lane, _source: 1))]
    assert served.count("new") == 40
    assert DEFAULT_SHARES[Lane.FRESH] > DEFAULT_SHARES[Lane.BACKFILL]


# 7. Control plane vs data plane


def test_7_the_control_plane_decides_which_and_when() -> None:
    work = Partition().tell(failed(1)).open_work
    assert (work.key, work.ready_at) == (KEY, START + STEP + timedelta(minutes=5))


# 8. Operator interface


def test_8_the_next_retry_and_its_reason_can_be_shown() -> None:
    decision = decide(Failing(KEY, 2, Cause.REJECTED, START, "run"), RETRIES, START)
    assert decision == Wait(START + timedelta(minutes=30), "2 failures in a row, the last rejected")
    assert isinstance(decide(None, RETRIES, START), RunNow)


def test_8_a_requeue_takes_effect_at_once_and_judges_what_is_sealed_first() -> None:
    partition = Partition().tell(sealed(1), rejected(1), requeued(1))
    work = partition.open_work
    assert (work.kind, work.run_id, work.ready_at) == (WorkKind.JUDGE, run_id(1), partition.at)


# 9. Invariants


def test_9_every_attempt_counts_exactly_once() -> None:
    for verdict in (accept(KEY, 1), reject(KEY, 1)):
        before = PartitionState.pending(KEY)
        assert next_state(before, verdict, START).attempt_count == before.attempt_count + 1


def test_9_a_retry_never_touches_what_is_published() -> None:
    partition = good()
    pointer = partition.folded.published
    for fact in (failed(2), sealed(3), rejected(3), failed(4, ErrorClass.PERMANENT)):
        partition.tell(fact)
        assert partition.folded.published == pointer
        assert partition.open_work.lane is Lane.REFRESH


def test_9_current_run_is_always_one_that_was_judged_and_so_sealed() -> None:
    partition = Partition()
    seen = set()
    for fact in (
        failed(1),
        sealed(2),
        rejected(2),
        sealed(3),
        accepted(3),
        failed(4),
        sealed(5),
        rejected(5),
    ):
        partition.tell(fact)
        seen |= {fact.run_id} if isinstance(fact, PartitionJudged) else set()
        assert partition.state.current_run_id is None or partition.state.current_run_id in seen
