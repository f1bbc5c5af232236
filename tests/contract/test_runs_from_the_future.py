"""R-RUN-2: a run id that is ahead of the ledger's clock is refused by name, wherever it comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from ulid import ULID

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.model import RunEvent, RunId
from sealbook.model.keys import TOLERANCE
from sealbook.model.partition_events import PartitionJudged, Stage
from tests.support.ledger import KEY, OTHER, accept, run_id

NOW = datetime(2026, 2, 1, tzinfo=UTC)
AHEAD = RunId(str(ULID.from_datetime(NOW + TOLERANCE + timedelta(milliseconds=1))))
WITHIN = RunId(str(ULID.from_datetime(NOW + TOLERANCE)))
UTMOST = RunId("7" + "Z" * 25)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger at that time."""
    with open_ledger(ledger_url, clock=lambda: NOW) as opened:
        yield opened


def of_run(run: RunId) -> PartitionJudged:
    """Return what a verdict on a run tells."""
    fact = PartitionJudged.of(accept(), 1)
    object.__setattr__(fact, "run_id", run)
    return fact


DOORS: dict[str, Callable[[Ledger, RunId], object]] = {
    "a verdict": lambda ledger, run: ledger.judge([accept(OTHER), of_run(run).verdict]),
    "a step of a stage": lambda ledger, run: ledger.runs.open_steps(Stage.EXTRACT, [run_id(1), run]),
    "a fact": lambda ledger, run: ledger.run_store.append_event(of_run(run).to_event()),
    "a rollback": lambda ledger, run: ledger.rollback(KEY, run, actor="ann", reason="back"),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_run_from_the_future_is_refused(ledger: Ledger, door: str) -> None:
    """By name, with a way out, and nothing of the call is written."""
    for run in (AHEAD, UTMOST):
        with pytest.raises(InvalidInput, match=f"run {run} is from the future") as refused:
            DOORS[door](ledger, run)
        assert refused.value.remedy
    assert list(ledger.states()) == []
    assert list(ledger.run_store.fetch_events(run_id(1))) == []
    assert list(ledger.run_store.fetch_events(AHEAD)) == []


def test_a_clock_that_is_a_little_fast_is_borne_with(ledger: Ledger) -> None:
    assert ledger.judge([of_run(WITHIN).verdict])[0].current_run_id == WITHIN


def test_the_ledger_takes_its_own_runs_after_its_clock_was_set_back(ledger_url: str) -> None:
    with open_ledger(ledger_url, clock=lambda: NOW + timedelta(days=8)) as fast:
        first = fast.open_run()
        fast.judge([of_run(first).verdict])
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        second = ledger.open_run()
        assert ledger.runs.open_steps(Stage.EXTRACT, [second]) == {second: 1}
        ledger.judge([of_run(second).verdict])
        assert ledger.state(KEY).current_run_id == second
        assert ledger.rollback(KEY, first, actor="ann", reason="back").current_run_id == first
        assert ledger.rollback(KEY, second, actor="ann", reason="and forth").current_run_id == second
        with pytest.raises(InvalidInput, match="from the future"):
            ledger.judge([of_run(UTMOST).verdict])


def test_another_engine_has_ids_of_its_own(ledger: Ledger) -> None:
    """R-EVT-3: what is no fact of ours may be of any run."""
    assert ledger.run_store.append_event(RunEvent.new("zebra-7", "SomethingElse")).persisted
