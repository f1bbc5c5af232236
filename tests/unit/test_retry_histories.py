"""Work in step with every legal history: nothing good stays unloaded, no failure is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sealbook.model import Outcome, Status
from sealbook.model.failures import ErrorClass
from sealbook.model.keys import RunId
from sealbook.model.partition_events import PartitionFact, Stage
from sealbook.model.partition_fold import FoldedPartition, fold_fact
from sealbook.model.retry import Retries
from sealbook.model.status import Availability
from sealbook.model.work import (
    Standing,
    Work,
    WorkKind,
    clear_stop,
    contract_changed,
    mark_terminal,
    next_work,
)
from tests.support.ledger import KEY, run_id
from tests.support.partition_facts import (
    cancelled,
    failed,
    hidden,
    judged,
    published,
    requeued,
    rolled_back,
    sealed,
)

RETRIES = Retries(max_attempts=4)


class Histories(RuleBasedStateMachine):
    """A partition whose state and pointer are folded by the model, as the ledger moves them."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = FoldedPartition.unknown(KEY)
        self.work: Work | None = None
        self.at = datetime(2026, 1, 2, tzinfo=UTC)
        self.runs = 0
        self.judgements = 0
        self.outcomes: dict[int, Outcome | None] = {}
        """Of each sealed run, what its latest judgement said."""
        self.was_published = False
        self.failed_newest = False
        """Whether the newest run of all failed, and nothing has answered that yet."""

    @property
    def standing(self) -> Standing:
        state, pointer = self.partition.state, self.partition.published
        authority = state.current_run_id if state.status is Status.SUCCESS else None
        if pointer is None:
            return Standing(authority, Availability.HIDDEN if self.was_published else Availability.NONE)
        published = pointer.run_id == authority
        return Standing(authority, Availability.PUBLISHED if published else Availability.BEHIND)

    def tell(self, fact: PartitionFact) -> None:
        """Fold a fact, and what follows from it in the same transaction."""
        self.at += timedelta(minutes=7)
        self.partition = fold_fact(self.partition, fact, self.at)
        self.was_published |= self.partition.published is not None
        self.work = next_work(self.work, fact, self.standing, RETRIES, self.at)
        pointer = self.partition.published
        if pointer is not None and self.partition.state.status is not Status.SUCCESS:
            self.tell(hidden(_number(pointer.run_id)))

    @rule()
    def seal(self) -> None:
        self.runs += 1
        self.outcomes[self.runs] = None
        self.tell(sealed(self.runs))

    @rule(error_class=st.sampled_from(ErrorClass))
    def fail(self, error_class: ErrorClass) -> None:
        self.runs += 1
        self.failed_newest = True
        self.tell(failed(self.runs, error_class))

    @precondition(lambda self: self.outcomes)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def judge(self, data: st.DataObject, outcome: Outcome) -> None:
        run = data.draw(st.sampled_from(sorted(self.outcomes)))
        self.judgements += 1
        again = None if self.outcomes[run] is None else str(self.judgements)
        self.outcomes[run] = outcome
        self.tell(judged(run, outcome, again=again))

    @precondition(lambda self: self.standing.authority)
    @rule()
    def load(self) -> None:
        self.tell(published(_number(self.standing.authority)))

    @precondition(lambda self: self.standing.authority)
    @rule(error_class=st.sampled_from(ErrorClass))
    def fail_to_load(self, error_class: ErrorClass) -> None:
        self.tell(failed(_number(self.standing.authority), error_class, Stage.LOAD))

    @precondition(lambda self: self.partition.state.status is Status.FAILED)
    @rule()
    def requeue(self) -> None:
        self.tell(requeued(max(run for run, outcome in self.outcomes.items() if outcome is not None)))
        assert self.work is not None
        assert (self.work.kind, self.work.ready_at, self.work.stop) == (WorkKind.JUDGE, self.at, None)

    @precondition(lambda self: self.rollbacks())
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.rollbacks()))
        self.failed_newest = False
        self.tell(rolled_back(run, _number(self.partition.state.current_run_id), self.runs))

    def rollbacks(self) -> list[int]:
        state = self.partition.state
        if state.status is Status.PENDING or state.current_run_id is None:
            return []
        accepted = [run for run, outcome in self.outcomes.items() if outcome is Outcome.ACCEPTED]
        return [run for run in accepted if run_id(run) != state.current_run_id]

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.tell(cancelled(data.draw(st.integers(1, self.runs))))

    @precondition(lambda self: self.work)
    @rule(contract_hash=st.sampled_from(["contract-1", "contract-2"]))
    def change_contract(self, contract_hash: str) -> None:
        assert self.work is not None
        self.work = contract_changed(self.work, contract_hash, self.at)

    @precondition(lambda self: self.work)
    @rule(stop=st.booleans())
    def mark_or_clear(self, stop: bool) -> None:
        assert self.work is not None
        self.work = mark_terminal(self.work) if stop else clear_stop(self.work, self.at)

    @invariant()
    def a_success_that_consumers_do_not_get_is_to_be_loaded(self) -> None:
        loads = self.work is not None and self.work.kind is WorkKind.LOAD
        assert loads == (self.standing.to_load is not None)
        if loads:
            assert self.work is not None
            assert self.work.run_id == self.standing.to_load

    @invariant()
    def a_failure_has_work_or_has_stopped(self) -> None:
        if self.partition.state.status is Status.FAILED:
            assert self.work is not None

    @invariant()
    def a_newest_run_that_failed_has_work_until_something_good_is_there(self) -> None:
        if self.failed_newest and self.standing.authority is None:
            assert self.work is not None

    @invariant()
    def what_has_failed_too_often_is_not_fetched(self) -> None:
        if self.work is not None and self.work.kind is WorkKind.FETCH:
            assert RETRIES.max_attempts is not None
            assert self.work.stop is not None or self.work.tries < RETRIES.max_attempts


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)


def _number(run: RunId | None) -> int:
    assert run is not None
    return int(run)
