"""R-PST-2: what the facts about a partition add up to, in whatever order they arrive."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model.partition_events import PartitionFact, Stage
from sealbook.model.status import AttemptOutcome
from tests.support.ledger import run_id
from tests.support.status import (
    HOUR,
    START,
    cancelled,
    failed,
    hidden,
    judged,
    log,
    published,
    rejected,
    requeued,
    rolled_back,
    sealed,
    status_of,
)

FAILED, SUCCEEDED, CANCELLED = AttemptOutcome.FAILED, AttemptOutcome.SUCCEEDED, AttemptOutcome.CANCELLED

# Facts; the last attempt as its run, hour and outcome; the materialization as its run and hour; the code
# version.
Attempt = tuple[int, int, AttemptOutcome] | None
Materialized = tuple[int, int] | None
FOLDS: dict[str, tuple[list[PartitionFact], Attempt, Materialized, str | None]] = {
    "nothing": ([], None, None, None),
    "sealed": ([sealed()], None, None, None),
    "accepted, not loaded": ([sealed(), judged()], None, None, None),
    "published": ([sealed(), judged(), published()], (1, 3, SUCCEEDED), (1, 3), "one"),
    "extraction failed for good": ([failed()], (1, 1, FAILED), None, None),
    "rejected": ([sealed(), rejected()], (1, 2, FAILED), None, None),
    "not staged": ([judged(), failed(stage=Stage.LOAD)], (1, 2, FAILED), None, None),
    "cancelled": ([sealed(), cancelled()], (1, 2, CANCELLED), None, None),
    "requeued": ([rejected(), requeued()], (1, 1, FAILED), None, None),
    "failed retry keeps the materialization": (
        [judged(), published(), failed(2)],
        (2, 3, FAILED),
        (1, 2),
        "one",
    ),
    "success after a failure": ([failed(), judged(2), published(2)], (2, 3, SUCCEEDED), (2, 3), "one"),
    "cancelled attempt keeps the materialization": (
        [judged(), published(), sealed(2), cancelled(2)],
        (2, 4, CANCELLED),
        (1, 2),
        "one",
    ),
    "newer run": (
        [judged(), published(), judged(2, contract="two"), published(2)],
        (2, 4, SUCCEEDED),
        (2, 4),
        "two",
    ),
    "newer run accepted, not loaded": (
        [judged(), published(), judged(2, contract="two")],
        (1, 2, SUCCEEDED),
        (1, 2),
        "one",
    ),
    "accepted again by another contract": (
        [judged(), published(), judged(contract="two")],
        (1, 2, SUCCEEDED),
        (1, 2),
        "two",
    ),
    "demoted": ([judged(), published(), rejected(), hidden()], (1, 3, FAILED), (1, 2), "one"),
    "rolled back": (
        [judged(), published(), judged(2, contract="two"), published(2), rolled_back(1, 2), published(1)],
        (1, 6, SUCCEEDED),
        (1, 6),
        "one",
    ),
    "code version not recorded": (
        [judged(contract=None), published()],
        (1, 2, SUCCEEDED),
        (1, 2),
        None,
    ),
}


@pytest.mark.parametrize("case", FOLDS)
def test_what_facts_add_up_to(case: str) -> None:
    facts, attempt, materialized, code_version = FOLDS[case]
    status = status_of(log(*facts))
    last, made = status.attempt, status.materialization
    assert attempt == (last and (int(last.run_id), (last.at - START) // HOUR, last.outcome))
    assert materialized == (made and (int(made.run_id), (made.at - START) // HOUR))
    assert status.code_version == code_version


def test_a_late_success_after_a_newer_failure_is_still_the_materialization() -> None:
    accepted, success, failure = log(judged(), published(), failed(2))
    status = status_of([failure, accepted, success])
    assert status == status_of([accepted, success, failure])
    assert status.attempt is not None
    assert status.attempt.outcome is FAILED
    assert status.materialization is not None
    assert status.materialization.run_id == run_id(1)


def test_an_acceptance_that_arrives_after_its_publication_still_gives_the_code_version() -> None:
    accepted, publication = log(judged(contract="two"), published())
    assert status_of([publication, accepted]).code_version == "two"


@pytest.mark.parametrize("case", [case for case, (facts, *_) in FOLDS.items() if len(facts) < 6])
def test_every_order_of_a_short_history_ends_in_the_same_status(case: str) -> None:
    logged = log(*FOLDS[case][0])
    assert all(status_of(order) == status_of(logged) for order in permutations(logged))


RUNS = st.integers(1, 3)
FACTS = st.one_of(
    *(RUNS.map(kind) for kind in (sealed, failed, rejected, published, hidden, cancelled, requeued)),
    st.builds(judged, RUNS, contract=st.sampled_from(["one", "two", None])),
)


@given(st.lists(FACTS, max_size=12), st.data())
def test_any_order_with_any_duplicates_ends_in_the_same_status(
    facts: list[PartitionFact], data: st.DataObject
) -> None:
    logged = log(*facts)
    again = data.draw(st.lists(st.sampled_from(logged), max_size=6)) if logged else []
    assert status_of(data.draw(st.permutations([*logged, *again]))) == status_of(logged)
