"""R-STATE-3 to R-STATE-6: any history, on every database, against a model written from the table of moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from sealbook.errors import Conflict, IllegalMove, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, PartitionState, Verdict
from sealbook.status.verify import verify_ledger
from tests.support.ledger import accept, reject, run_id

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
        self.judged.append(verdict)
        if verdict.accepted:
            if self.status != "success" or self.current is None or verdict.run_id >= self.current:
                self.status, self.current, self.error = "success", verdict.run_id, None
        elif self.status != "success" or verdict.run_id == self.current:
            self.status, self.error = "failed", verdict.error_message

    def requeue(self) -> None:
        if self.status != "failed":
            raise Refused
        self.status, self.error = "pending", None

    def rollback(self, run: str) -> None:
        of_run = [each for each in self.judged if each.run_id == run]
        earlier = self.status == "success" and self.current is not None and run < self.current
        if not (of_run and of_run[-1].accepted and earlier):
            raise Refused
        if self.describes(run)[0] != self.describes(self.current)[0]:
            raise Refused
        self.current = run


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
    """Does the same to a ledger and to the reference, and compares."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.book: Book = {key: Page() for key in KEYS}
        self.overrides = 0

    def both(self, act: Callable[[], object], model: Callable[[Book], object]) -> bool:
        """Act on both; either both refuse, or both do it."""
        copy = {
            key: Page(page.status, page.current, page.error, list(page.judged))
            for key, page in self.book.items()
        }
        try:
            model(copy)
        except Refused:
            with pytest.raises((Conflict, IllegalMove, NotFound)):
                act()
            return False
        act()
        self.book = copy
        return True

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

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    def requeue(self, keys: list[PartitionKey]) -> None:
        def model(book: Book) -> None:
            for key in keys:
                book[key].requeue()

        self.overrides += self.both(lambda: self.ledger.requeue(keys, actor="ann", reason="again"), model)

    @rule(key=st.sampled_from(KEYS), run=st.integers(1, 4).map(run_id))
    def rollback(self, key: PartitionKey, run: str) -> None:
        self.overrides += self.both(
            lambda: self.ledger.rollback(key, run, actor="ann", reason="back"),
            lambda book: book[key].rollback(run),
        )

    @invariant()
    def states_agree(self) -> None:
        found = {state.key: fields(state) for state in self.ledger.states()}
        assert found == {key: row(key, page) for key, page in self.book.items() if page.judged}

    def teardown(self) -> None:
        for key, page in self.book.items():
            assert fields(self.ledger.state(key)) == row(key, page)
            attempts = self.ledger.attempts(key)
            assert [each.attempt for each in attempts] == list(range(1, len(page.judged) + 1))
            for each, verdict in zip(attempts, page.judged, strict=True):
                assert (each.run_id, each.outcome, each.error_message, each.revalidation_id) == (
                    verdict.run_id,
                    verdict.outcome,
                    verdict.error_message,
                    verdict.revalidation_id,
                )
        with self.ledger._database.read() as connection:
            assert len(connection.execute(select(override_log.c.id)).all()) == self.overrides
        assert list(verify_ledger(self.ledger.reader)) == []  # R-EVT-11
        self.ledger.close()


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
            super().__init__(open_ledger(new_ledger_url()))

    on_sqlite = "sqlite" in request.node.name
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40 if on_sqlite else 20,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
