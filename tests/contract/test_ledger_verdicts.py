"""R-STATE-3 to R-STATE-6 through `judge`, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from sealbook.errors import Conflict, InvalidInput
from sealbook.ledger import Ledger, migrate, open_ledger
from sealbook.model import Check, PartitionKey, PartitionState, Status, Verdict
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id

THIRD = PartitionKey("demo", "Acme", "clicks", date(2026, 1, 1))


def everything(ledger: Ledger) -> object:
    """Return all that judging could have changed."""
    states = list(ledger.states())
    return states, [ledger.attempts(state.key) for state in states]


def test_results_come_in_the_order_given(ledger: Ledger) -> None:
    """One state for each verdict, keys in any order, a key as often as it was judged."""
    verdicts = [accept(OTHER, 2), reject(THIRD), accept(KEY), accept(OTHER, 3), reject(OTHER, 4)]
    results = ledger.judge(verdicts)
    assert [result.key for result in results] == [verdict.key for verdict in verdicts]
    assert [result.attempt_count for result in results] == [1, 1, 1, 2, 3]
    assert [result.current_run_id for result in results] == [run_id(2), None, run_id(1), run_id(3), run_id(3)]
    assert results[4] == ledger.state(OTHER)


def test_no_verdicts(ledger: Ledger) -> None:
    assert ledger.judge([]) == []
    assert list(ledger.states()) == []


def test_verdicts_may_come_from_a_generator(ledger: Ledger) -> None:
    assert len(ledger.judge(accept(KEY, run) for run in (1, 2, 3))) == 3


def test_what_is_no_verdict_stops_the_call(ledger: Ledger) -> None:
    """Nothing of the call is written."""
    bad: list[Any] = [accept(KEY), "accept"]
    with pytest.raises(InvalidInput, match=r"^verdict "):
        ledger.judge(bad)
    assert list(ledger.states()) == []


def test_accept_and_reject_write_the_row_of_the_contract(ledger: Ledger) -> None:
    """R-STATE-4: schema_version and record_count describe current_run_id; the error is that of a failure."""
    [accepted, rejected] = ledger.judge(
        [accept(KEY, 3, version="2", records=7), reject(OTHER, 3, error="why")]
    )
    assert ledger.state(KEY) == accepted
    assert ledger.state(OTHER) == rejected
    assert (accepted.status, accepted.current_run_id) == (Status.SUCCESS, run_id(3))
    assert (accepted.schema_version, accepted.record_count, accepted.error_message) == ("2", 7, None)
    assert (rejected.status, rejected.current_run_id) == (Status.FAILED, None)
    assert (rejected.schema_version, rejected.record_count, rejected.error_message) == (None, None, "why")


def test_a_verdict_delivered_again_changes_nothing(ledger: Ledger) -> None:
    """R-STATE-5: within a call, across calls, and after others came in between."""
    first = ledger.judge([accept(KEY, 1), accept(KEY, 1), reject(OTHER, 1)])
    assert first[0] == first[1]
    assert first[0].attempt_count == 1
    before = everything(ledger)
    assert ledger.judge([accept(KEY, 1), reject(OTHER, 1), accept(KEY, 1)]) == [first[0], first[2], first[0]]
    assert everything(ledger) == before
    [newer] = ledger.judge([accept(KEY, 2)])
    assert ledger.judge([accept(KEY, 1)]) == [newer]
    assert [attempt.run_id for attempt in ledger.attempts(KEY)] == [run_id(1), run_id(2)]


def test_evidence_may_differ_when_a_verdict_is_delivered_again(ledger: Ledger) -> None:
    """R-STATE-5: the outcome makes it the same; the evidence that was recorded first stands."""
    [state] = ledger.judge([reject(KEY, 1, error="first", checks=(Check("a", passed=False),))])
    assert ledger.judge([reject(KEY, 1, error="second", checks=())]) == [state]
    [attempt] = ledger.attempts(KEY)
    assert (attempt.error_message, [check.name for check in attempt.checks]) == ("first", ["a"])


def test_only_what_is_new_of_a_redelivered_call_counts(ledger: Ledger) -> None:
    """R-STATE-5: a call that grew is applied in its new part."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    before = ledger.state(KEY)
    results = ledger.judge([accept(KEY, 1), accept(OTHER, 1), accept(OTHER, 2), accept(THIRD, 1)])
    assert [result.attempt_count for result in results] == [1, 1, 2, 1]
    assert ledger.state(KEY) == before


CONFLICTS: dict[str, tuple[Verdict, Verdict]] = {
    "rejected after accepted": (accept(KEY, 1), reject(KEY, 1)),
    "accepted after rejected": (reject(KEY, 1), accept(KEY, 1)),
    "another record_count": (accept(KEY, 1), accept(KEY, 1, records=11)),
    "another schema_version": (accept(KEY, 1), accept(KEY, 1, version="2")),
    "the same re-validation": (accept(KEY, 1, again="a"), reject(KEY, 1, again="a")),
}


@pytest.mark.parametrize(("recorded", "delivered"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_contradiction_is_a_conflict(ledger: Ledger, recorded: Verdict, delivered: Verdict) -> None:
    """R-STATE-5: it names the key and the run, and nothing of its call is written."""
    ledger.judge([recorded])
    before = everything(ledger)
    with pytest.raises(Conflict) as refused:
        ledger.judge([accept(OTHER), delivered, accept(THIRD)])
    assert str(KEY) in str(refused.value)
    assert run_id(1) in str(refused.value)
    assert "revalidation_id" in str(refused.value.remedy)
    assert everything(ledger) == before
    with pytest.raises(Conflict):
        ledger.judge([accept(OTHER, 2), recorded, delivered])
    assert everything(ledger) == before


def test_a_call_that_contradicts_itself_writes_nothing(ledger: Ledger) -> None:
    """R-STATE-5: nor does it leave a row behind for a key that had none."""
    with pytest.raises(Conflict):
        ledger.judge([accept(OTHER), accept(KEY, 1), reject(KEY, 1)])
    assert everything(ledger) == ([], [])
    assert ledger.state(KEY) == PartitionState.pending(KEY)


def test_a_revalidation_is_an_attempt_of_its_own(ledger: Ledger) -> None:
    """R-STATE-3, R-STATE-5: accepted again, then demoted, then accepted after all; each delivered twice."""
    ledger.judge([accept(KEY, 1)])
    for verdict, status, attempts in (
        (accept(KEY, 1, again="a"), Status.SUCCESS, 2),
        (reject(KEY, 1, again="b", error="found out"), Status.FAILED, 3),
        (accept(KEY, 1, again="c"), Status.SUCCESS, 4),
    ):
        for _ in range(2):
            [state] = ledger.judge([verdict])
            assert (state.status, state.attempt_count) == (status, attempts)
            assert (state.current_run_id, state.schema_version, state.record_count) == (run_id(1), "1", 10)
    assert [attempt.revalidation_id for attempt in ledger.attempts(KEY)] == [None, "a", "b", "c"]
    assert ledger.state(KEY).error_message is None


def test_one_revalidation_id_serves_many_runs_and_keys(ledger: Ledger) -> None:
    """R-STATE-5: its identity is that of key, run and revalidation together."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2), accept(OTHER, 1)])
    again = [accept(KEY, 1, again="a"), accept(KEY, 2, again="a"), accept(OTHER, 1, again="a")]
    assert [state.attempt_count for state in ledger.judge(again)] == [3, 4, 2]


def test_a_late_run_does_not_take_authority(ledger: Ledger) -> None:
    """R-STATE-3: an older acceptance and any rejection count, and leave a success alone."""
    ledger.judge([accept(KEY, 5, version="2", records=50)])
    late = ledger.judge([accept(KEY, 3), reject(KEY, 4), reject(KEY, 6)])
    assert [state.attempt_count for state in late] == [2, 3, 4]
    for state in late:
        assert (state.status, state.current_run_id) == (Status.SUCCESS, run_id(5))
        assert (state.schema_version, state.record_count, state.error_message) == ("2", 50, None)


def test_an_older_run_takes_over_from_a_demoted_one(ledger: Ledger) -> None:
    """R-STATE-3: a demotion names the bad run, and whatever is accepted next wins."""
    ledger.judge([accept(KEY, 5), reject(KEY, 5, again="x", error="found out")])
    assert (ledger.state(KEY).status, ledger.state(KEY).current_run_id) == (Status.FAILED, run_id(5))
    [state] = ledger.judge([accept(KEY, 3, records=3)])
    assert (state.status, state.current_run_id, state.record_count) == (Status.SUCCESS, run_id(3), 3)


def test_the_newest_rejection_is_the_one_told(ledger: Ledger) -> None:
    """R-STATE-4: on failed, what the latest rejection found."""
    ledger.judge([reject(KEY, 2, error="second run"), reject(KEY, 1, error="first run, judged later")])
    assert ledger.state(KEY).error_message == "first run, judged later"
    assert ledger.state(KEY).attempt_count == 2


def test_thousands_in_one_call(ledger: Ledger) -> None:
    """More than one statement takes; all of them in one transaction."""
    keys = [PartitionKey("demo", "Acme", "q", date(1990, 1, 1) + timedelta(days=day)) for day in range(5_001)]
    results = ledger.judge([accept(key) for key in reversed(keys)])
    assert [result.key for result in results] == list(reversed(keys))
    assert ledger.status_counts()[Status.SUCCESS] == 5_001
    with pytest.raises(Conflict):
        ledger.judge([*(accept(key, 2) for key in keys), reject(keys[0], 1)])
    assert {state.attempt_count for state in ledger.states()} == {1}


@pytest.fixture
def ticks() -> Iterator[datetime]:
    """An hour more each time."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(100))


def test_times_are_those_of_the_judgement(ledger_url: str, ticks: Iterator[datetime]) -> None:
    """updated_at moves with every attempt, and with nothing else."""
    with open_ledger(ledger_url, clock=lambda: next(ticks)) as ledger:
        first = ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
        assert first[0].updated_at == first[1].updated_at
        assert ledger.judge([accept(KEY, 1)]) == first[:1]
        [second] = ledger.judge([reject(KEY, 2)])
        assert first[0].updated_at is not None
        assert second.updated_at is not None
        assert second.updated_at > first[0].updated_at
        assert ledger.state(OTHER) == first[1]
        assert [attempt.judged_at for attempt in ledger.attempts(KEY)] == [
            first[0].updated_at,
            second.updated_at,
        ]


def test_a_revalidation_never_changes_the_schema_version_of_a_run(ledger: Ledger) -> None:
    """R-STATE-10: refused by name, whether the run has authority or not, and nothing is written."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    before = ledger.state(KEY)
    for run in (1, 2):
        with pytest.raises(Conflict, match=f"{KEY} run {run_id(run)} was accepted under schema_version 1"):
            ledger.judge([accept(OTHER, 1), accept(KEY, run, version="2", again="r")])
    with pytest.raises(Conflict, match="is delivered under 2"):
        ledger.judge([accept(OTHER, 1), accept(OTHER, 1, version="2", again="r")])
    assert [*ledger.states()] == [before]


def test_a_partition_that_another_judges_first_counts_both(postgresql: PostgresqlServer) -> None:
    """R-STATE-5: a row that appears after it was found missing is not lost, and not written over."""
    url = postgresql.create_database()
    migrate(url)
    others = iter([[accept(KEY, 1)], [reject(OTHER, 1)]])
    with open_ledger(url) as other:

        def clock() -> datetime:
            for verdicts in islice(others, 1):
                other.judge(verdicts)  # between the look for rows and the writing of them
            return datetime.now(UTC)

        with open_ledger(url, clock=clock) as ledger:
            states = ledger.judge([accept(THIRD, 2), accept(KEY, 2), reject(OTHER, 2)])
        assert [state.attempt_count for state in states] == [1, 2, 2]
        assert [[each.run_id for each in other.attempts(key)] for key in (THIRD, KEY, OTHER)] == [
            [run_id(2)],
            [run_id(1), run_id(2)],
            [run_id(1), run_id(2)],
        ]
        assert len(other.run_store.fetch_feed()) == 5
