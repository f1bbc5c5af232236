"""R-STATE-3 to R-STATE-11: any history, on every database, against a model written from the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from sealbook.errors import Conflict, IllegalMove, NotFound
from sealbook.ledger import open_ledger
from sealbook.ledger.states.overrides import RequeueResult
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, PartitionState, RunId, Verdict
from sealbook.status.verify import verify_ledger
from tests.support.ledger import accept, reject, run_id

NOW = datetime(2026, 2, 1, tzinfo=UTC)
KEYS = [PartitionKey("demo", customer, "clicks", date(2026, 1, 1)) for customer in "ab"]


class Refused(Exception):
    """The table has no such move, or a verdict contradicts an earlier one."""


@dataclass
class Page:
    """The reference: one partition, by the table of R-STATE-3, with everything ever judged of it."""

    status: str = "pending"
    current: str | None = None
    error: str | None = None
    judged: list[Verdict] = field(default_factory=list)
    hold: str = ""

    def copy(self) -> Page:
        return replace(self, judged=list(self.judged))

    def describes(self, run: str | None) -> tuple[str | None, int | None]:
        """R-STATE-4: what the latest acceptance said of a run."""
        said = [each for each in self.judged if each.run_id == run and each.accepted]
        return (said[-1].schema_version, said[-1].record_count) if said else (None, None)

    def judge(self, verdict: Verdict) -> None:
        for known in self.judged:
            if (known.run_id, known.revalidation_id) == (verdict.run_id, verdict.revalidation_id):
                finding = (known.outcome, known.schema_version, known.record_count)
                if finding != (verdict.outcome, verdict.schema_version, verdict.record_count):
                    raise Refused
                return
        if verdict.accepted and self.describes(verdict.run_id)[0] not in (None, verdict.schema_version):
            raise Refused  # R-STATE-10
        self.judged.append(verdict)
        if verdict.accepted:
            newer = self.status != "success" or self.current is None or verdict.run_id >= self.current
            if newer and (verdict.run_id > self.hold or verdict.run_id == self.current):
                self.status, self.current, self.error = "success", verdict.run_id, None
        elif self.status != "success" or verdict.run_id == self.current:
            self.status, self.error = "failed", verdict.error_message

    def requeue(self) -> None:
        if self.status != "failed":
            raise Refused
        self.status, self.error = "pending", None

    def rollback(self, run: str, sealed: list[str] | None) -> None:
        """R-STATE-9."""
        of_run = [each for each in self.judged if each.run_id == run]
        if not (of_run and of_run[-1].accepted) or self.status == "pending" or run == self.current:
            raise Refused
        if self.describes(run)[0] != self.describes(self.current)[0]:
            raise Refused
        if sealed is not None and run not in sealed:
            raise Refused
        self.status, self.current, self.error = "success", run, None
        self.hold = max([self.hold, *(each.run_id for each in self.judged), *(sealed or [])])


Book = dict[PartitionKey, Page]

VERDICTS = st.builds(
    lambda key, run, good, again, records, version: (
        accept(key, run, again=again, records=records, version=version)
        if good
        else reject(key, run, again=again, error=f"run {run} has {records} faults")
    ),
    key=st.sampled_from(KEYS),
    run=st.integers(1, 4),
    good=st.booleans(),
    again=st.sampled_from([None, None, "a", "b"]),
    records=st.sampled_from([10, 10, 11]),
    version=st.sampled_from(["1", "1", "2"]),
)


class LedgerMachine(RuleBasedStateMachine):
    """Does the same to a ledger and to the reference, and compares.

    Three writers take turns, each by a clock of its own that may jump by days.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clocks = [NOW] * 3
        self.writers = [open_ledger(url, clock=partial(self.clocks.__getitem__, each)) for each in range(3)]
        self.ledger = self.writers[0]
        self.book: Book = {key: Page() for key in KEYS}
        self.overrides = 0
        self.revalidations = 0
        self.times: dict[PartitionKey, datetime] = {}

    @rule(writer=st.integers(0, 2), days=st.integers(-9, 9))
    def another_writer_with_another_clock(self, writer: int, days: int) -> None:
        self.ledger = self.writers[writer]
        self.clocks[writer] += timedelta(days=days, seconds=1)

    def both(self, act: Callable[[], object], model: Callable[[Book], object]) -> bool:
        """Act on both; either both refuse, or both do it."""
        copy = {key: page.copy() for key, page in self.book.items()}
        try:
            model(copy)
        except Refused:
            with pytest.raises((Conflict, IllegalMove, NotFound)):
                act()
            return False
        act()
        self.book = copy
        return True

    @initialize()
    def begin_with_runs_to_choose_from(self) -> None:
        """Without them most histories have nothing to roll back to."""
        self.judge([accept(KEYS[0], run) for run in (1, 2, 3)])

    @rule(verdicts=st.lists(VERDICTS, min_size=1, max_size=6))
    def judge(self, verdicts: list[Verdict]) -> None:
        results: list[PartitionState] = []
        expected: list[tuple[Any, ...]] = []

        def model(book: Book) -> None:
            for verdict in verdicts:
                book[verdict.key].judge(verdict)
                expected.append(row(verdict.key, book[verdict.key]))

        if self.both(lambda: results.extend(self.ledger.judge(verdicts)), model):
            assert [fields(result) for result in results] == expected

    @rule(key=st.sampled_from(KEYS), run=st.integers(1, 4), good=st.booleans(), records=st.integers(10, 11))
    def judge_again(self, key: PartitionKey, run: int, good: bool, records: int) -> None:
        """A re-validation that nothing contradicts, which most that are made at random would be."""
        self.revalidations += 1
        again = f"again {self.revalidations}"
        version = self.book[key].describes(run_id(run))[0] or "1"
        self.judge(
            [
                accept(key, run, again=again, records=records, version=version)
                if good
                else reject(key, run, again=again)
            ]
        )

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    def requeue(self, keys: list[PartitionKey]) -> None:
        done: list[PartitionKey] = []
        results: list[RequeueResult] = []

        def model(book: Book) -> None:
            for key in keys:
                if book[key].status == "failed":
                    book[key].requeue()
                    done.append(key)
            if not done:
                raise Refused

        def act() -> None:
            results.extend(self.ledger.requeue(keys, actor="ann", reason="again"))

        if self.both(act, model):
            self.overrides += 1
            assert [each.key for each in results] == keys
            assert [each.key for each in results if each.refused is None] == done

    @rule(
        key=st.sampled_from(KEYS),
        run=st.integers(1, 4).map(run_id),
        sealed=st.none() | st.lists(st.integers(1, 5).map(run_id)),
    )
    def rollback(self, key: PartitionKey, run: RunId, sealed: list[RunId] | None) -> None:
        self.overrides += self.both(
            lambda: self.ledger.rollback(key, run, actor="ann", reason="back", sealed=sealed),
            lambda book: book[key].rollback(run, list(sealed) if sealed is not None else None),
        )

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def rollback_to_an_accepted_run(self, key: PartitionKey, data: st.DataObject) -> None:
        """R-STATE-9: both ways, and from a demoted partition too; what is not allowed is refused."""
        accepted = sorted({each.run_id for each in self.book[key].judged if each.accepted})
        if accepted:
            self.rollback(key, data.draw(st.sampled_from(accepted)), None)

    @invariant()
    def states_agree(self) -> None:
        found = {state.key: fields(state) for state in self.ledger.states()}
        assert found == {key: row(key, page) for key, page in self.book.items() if page.judged}

    @invariant()
    def times_never_go_back(self) -> None:
        """R-STATE-11."""
        for state in self.ledger.states():
            assert state.updated_at is not None
            assert state.updated_at >= self.times.get(state.key, state.updated_at)
            self.times[state.key] = state.updated_at

    def teardown(self) -> None:
        try:
            self.everything_agrees()
        finally:
            for writer in self.writers:
                writer.close()

    def everything_agrees(self) -> None:
        for key, page in self.book.items():
            assert fields(self.ledger.state(key)) == row(key, page)
            attempts = self.ledger.attempts(key)
            assert [each.attempt for each in attempts] == list(range(1, len(page.judged) + 1))
            assert sorted(each.judged_at for each in attempts) == [each.judged_at for each in attempts]
            for each, verdict in zip(attempts, page.judged, strict=True):
                assert (each.run_id, each.outcome, each.error_message, each.revalidation_id) == (
                    verdict.run_id,
                    verdict.outcome,
                    verdict.error_message,
                    verdict.revalidation_id,
                )
        with self.ledger._database.read() as connection:
            assert len(connection.execute(select(override_log.c.id)).all()) == self.overrides
        assert dict(self.ledger.reader.holds()) == {
            key: page.hold for key, page in self.book.items() if page.hold
        }
        assert list(verify_ledger(self.ledger.reader)) == []  # R-EVT-11


def row(key: PartitionKey, page: Page) -> tuple[Any, ...]:
    """Return what the reference expects of a state."""
    return (key, page.status, page.current, *page.describes(page.current), page.error, len(page.judged))


def fields(state: PartitionState) -> tuple[Any, ...]:
    """Return the fields of a state that do not depend on the clock."""
    return (
        state.key,
        state.status,
        state.current_run_id,
        state.schema_version,
        state.record_count,
        state.error_message,
        state.attempt_count,
    )


def test_any_history(new_ledger_url: Callable[[], str], request: pytest.FixtureRequest) -> None:
    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(new_ledger_url())

    on_sqlite = "sqlite" in request.node.name
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=120 if on_sqlite else 30,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
