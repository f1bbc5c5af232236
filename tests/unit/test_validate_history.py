"""Earlier runs of the same partition: their counts, and their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sealbook.ledger import open_ledger
from sealbook.model import RunId
from sealbook.validate.history import AcceptedCounts, InRunOrder
from sealbook.validate.plan import Candidate
from tests.support.validation import LATER_RUN, LATEST_RUN, RUN, accept, key, reject

RUNS = (RUN, LATER_RUN, LATEST_RUN)


def test_only_accepted_runs_that_are_older_count_newest_first() -> None:
    with open_ledger("sqlite://") as ledger:
        ledger.judge([accept(key(), RUN, 10), reject(key(), LATER_RUN), accept(key(), LATEST_RUN, 30)])
        counts = AcceptedCounts.load(ledger.reader, {key()})

    assert counts.before(key(), RUN) == []
    assert counts.before(key(), LATEST_RUN) == [10]
    assert counts.before(key(), RunId("01JBZQ6T5N8W3Y2V7R4K9M0XCE")) == [30, 10]
    assert counts.before(key("other"), LATEST_RUN) == []


def test_a_run_that_was_demoted_does_not_count_any_more() -> None:
    with open_ledger("sqlite://") as ledger:
        ledger.judge([accept(key(), RUN, 10), reject(key(), RUN, revalidation_id="again")])
        counts = AcceptedCounts.load(ledger.reader, {key()})

    assert counts.before(key(), LATER_RUN) == []


def test_a_run_accepted_a_moment_ago_counts() -> None:
    counts = AcceptedCounts()
    counts.add(key(), RUN, 10)

    assert counts.before(key(), LATER_RUN) == [10]


@given(st.permutations(range(6)))
def test_runs_pass_in_their_order_within_each_partition(order: list[int]) -> None:
    """Whatever the order in which tasks end, the newest run of a partition is judged last."""
    candidates = [Candidate(key(customer), run_id, 0) for customer in ("a", "b") for run_id in RUNS]
    in_order: InRunOrder[int] = InRunOrder(candidates)
    passed = [each for ordinal in order for each in in_order.pass_on(ordinal, ordinal)]

    assert sorted(passed) == [(ordinal, ordinal) for ordinal in range(6)]
    for customer in ("a", "b"):
        runs = [
            candidates[ordinal].run_id for ordinal, _ in passed if candidates[ordinal].key == key(customer)
        ]
        assert runs == sorted(runs)


def test_a_run_that_is_alone_never_waits() -> None:
    in_order: InRunOrder[str] = InRunOrder([Candidate(key("a"), RUN, 0), Candidate(key("b"), RUN, 0)])

    assert list(in_order.pass_on(1, "b")) == [(1, "b")]
