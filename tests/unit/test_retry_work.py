"""What is to be done about a partition after each fact (R-CTL-2, R-CTL-5, R-VER-6), as a table of cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFact, Stage
from sealbook.model.retry import Cause, Jitter, Retries, Stop
from sealbook.model.status import Availability
from sealbook.model.work import (
    Lane,
    Standing,
    Work,
    WorkKind,
    clear_stop,
    contract_changed,
    due_again,
    mark_terminal,
    next_work,
    setup_seen,
)
from tests.support.ledger import KEY, run_id
from tests.support.partition_facts import (
    CONTRACT,
    accepted,
    cancelled,
    failed,
    hidden,
    published,
    rejected,
    requeued,
    rolled_back,
    sealed,
)

BEFORE = datetime(2026, 1, 2, 3, tzinfo=UTC)
NOW = BEFORE + timedelta(hours=1)
RETRIES = Retries(jitter=Jitter.NONE, max_attempts=3)
FIRST, SECOND = NOW + timedelta(minutes=5), NOW + timedelta(minutes=30)

NOTHING = Standing(None, Availability.NONE)
"""Not judged, or not accepted; nobody could ever read it."""


def good(run: int) -> Standing:
    """Return where a partition stands whose accepted run is published."""
    return Standing(run_id(run), Availability.PUBLISHED)


def unloaded(run: int, availability: Availability = Availability.NONE) -> Standing:
    """Return where a partition stands whose accepted run is not what consumers get."""
    return Standing(run_id(run), availability)


FETCH = Work(KEY, Lane.FRESH, WorkKind.FETCH, BEFORE)
BACKFILL = replace(FETCH, lane=Lane.BACKFILL)
REFRESH = replace(FETCH, lane=Lane.REFRESH, run_id=run_id(5))
JUDGE = replace(FETCH, kind=WorkKind.JUDGE, run_id=run_id(7))
LOAD = replace(FETCH, kind=WorkKind.LOAD, run_id=run_id(7))
FAILED = Work(
    KEY,
    Lane.RETRY,
    WorkKind.FETCH,
    FIRST,
    tries=1,
    failing_since=NOW,
    cause=Cause.TRANSIENT,
    error="extract failed",
    run_id=run_id(7),
)
REJECTED = replace(FAILED, cause=Cause.REJECTED, error="bad rows", contract_hash=CONTRACT)
PARKED = replace(FAILED, ready_at=NOW, cause=Cause.PERMANENT, stop=Stop.PERMANENT)
QUOTA = Work(
    KEY,
    Lane.RETRY,
    WorkKind.FETCH,
    NOW + timedelta(hours=1),
    cause=Cause.QUOTA,
    error="extract failed",
)
LOAD_FAILED = replace(FAILED, kind=WorkKind.LOAD, error="load failed")
GIVEN_UP = replace(FAILED, ready_at=NOW, tries=3, stop=Stop.MAX_ATTEMPTS)
MANUAL = replace(FAILED, stop=Stop.MANUAL)


def waiting(work: Work, tries: int = 1, run: int = 7) -> Work:
    """Return work that has failed before and waits, as it is before the fact."""
    return replace(work, ready_at=BEFORE, tries=tries, failing_since=BEFORE, run_id=run_id(run))


Case = tuple[Work | None, PartitionFact, Standing, Work | None]

CASES: dict[str, Case] = {
    "extraction fails: the retry lane, after backoff": (FETCH, failed(7), NOTHING, FAILED),
    "extraction fails by hand: it is retried all the same": (None, failed(7), NOTHING, FAILED),
    "extraction fails in a backfill": (BACKFILL, failed(7), NOTHING, FAILED),
    "extraction fails again: the next step": (
        waiting(FAILED),
        failed(8),
        NOTHING,
        replace(FAILED, ready_at=SECOND, tries=2, failing_since=BEFORE, run_id=run_id(8)),
    ),
    "extraction fails once too often: terminal": (
        waiting(FAILED, tries=2),
        failed(8),
        NOTHING,
        replace(GIVEN_UP, failing_since=BEFORE, run_id=run_id(8)),
    ),
    "extraction fails for good: parked": (FETCH, failed(7, ErrorClass.PERMANENT), NOTHING, PARKED),
    "a quota is used up: no try is counted, the lane stays": (
        FETCH,
        failed(7, ErrorClass.QUOTA, retry_after=3600),
        NOTHING,
        replace(QUOTA, lane=Lane.FRESH),
    ),
    "a quota is used up by hand": (None, failed(7, ErrorClass.QUOTA, retry_after=3600), NOTHING, QUOTA),
    "a quota is used up amid failures: they stay counted": (
        waiting(FAILED, tries=2),
        failed(8, ErrorClass.QUOTA, retry_after=3600),
        NOTHING,
        replace(waiting(FAILED, tries=2), ready_at=QUOTA.ready_at),
    ),
    "a quota is used up by hand, of what was given up: it stays so": (
        GIVEN_UP,
        failed(8, ErrorClass.QUOTA, retry_after=3600),
        NOTHING,
        replace(GIVEN_UP, ready_at=QUOTA.ready_at),
    ),
    "a late failure of an older run changes nothing": (FAILED, failed(6), NOTHING, FAILED),
    "a refresh of a good day fails: it stays in its lane": (
        REFRESH,
        failed(7),
        good(5),
        replace(FAILED, lane=Lane.REFRESH),
    ),
    "a refresh by hand of a good day fails": (None, failed(7), good(5), replace(FAILED, lane=Lane.REFRESH)),
    "a run older than the good one fails: nothing is to be done": (None, failed(3), good(5), None),
    "what somebody gave up fails again: it stays given up": (
        waiting(MANUAL),
        failed(8),
        NOTHING,
        replace(MANUAL, ready_at=BEFORE, tries=2, failing_since=BEFORE, run_id=run_id(8)),
    ),
    "sealed: it is judged next": (FETCH, sealed(7), NOTHING, JUDGE),
    "sealed while it waits: it is judged at once": (
        FAILED,
        sealed(8),
        NOTHING,
        replace(FAILED, kind=WorkKind.JUDGE, ready_at=NOW, run_id=run_id(8)),
    ),
    "sealed though it was parked: it is judged": (
        PARKED,
        sealed(8),
        NOTHING,
        replace(PARKED, kind=WorkKind.JUDGE, run_id=run_id(8), stop=None),
    ),
    "sealed though somebody gave it up": (
        MANUAL,
        sealed(8),
        NOTHING,
        replace(MANUAL, kind=WorkKind.JUDGE, ready_at=NOW, run_id=run_id(8)),
    ),
    "sealed late by an older run": (FAILED, sealed(6), NOTHING, FAILED),
    "sealed by hand": (None, sealed(7), NOTHING, None),
    "rejected: the retry lane, after backoff, with the contract": (JUDGE, rejected(7), NOTHING, REJECTED),
    "rejected by hand": (None, rejected(7), NOTHING, REJECTED),
    "rejected by hand, an older run than the one that failed": (FAILED, rejected(6), NOTHING, FAILED),
    "a refresh is rejected: what is published stays, and so does the lane": (
        replace(JUDGE, lane=Lane.REFRESH),
        rejected(7),
        good(5),
        replace(REJECTED, lane=Lane.REFRESH),
    ),
    "an older run is rejected late": (None, rejected(3), good(5), None),
    "a run that was rolled back from is rejected once more": (None, rejected(7, again="x"), good(5), None),
    "a rejected refresh is judged again in vain": (
        replace(waiting(REJECTED), lane=Lane.REFRESH, kind=WorkKind.JUDGE),
        rejected(7, again="x"),
        good(5),
        replace(REJECTED, lane=Lane.REFRESH, ready_at=SECOND, tries=2, failing_since=BEFORE),
    ),
    "demoted: consumers have nothing any more": (
        None,
        rejected(7, again="x"),
        Standing(None, Availability.HIDDEN),
        REJECTED,
    ),
    "demoted before it was loaded": (LOAD, rejected(7, again="x"), NOTHING, REJECTED),
    "accepted: loaded at once": (JUDGE, accepted(7), unloaded(7), replace(LOAD, ready_at=NOW)),
    "accepted by hand": (None, accepted(7), unloaded(7), replace(LOAD, ready_at=NOW)),
    "accepted by hand, a newer run of a good day": (
        None,
        accepted(7),
        unloaded(7, Availability.BEHIND),
        replace(LOAD, lane=Lane.REFRESH, ready_at=NOW),
    ),
    "accepted after failures: they are over": (
        waiting(REJECTED, tries=2),
        accepted(8),
        unloaded(8),
        replace(LOAD, lane=Lane.RETRY, ready_at=NOW, run_id=run_id(8)),
    ),
    "accepted though it was given up": (
        MANUAL,
        accepted(8),
        unloaded(8),
        replace(LOAD, lane=Lane.RETRY, ready_at=NOW, run_id=run_id(8)),
    ),
    "the published run is accepted again, as was to be done": (
        replace(JUDGE, run_id=run_id(5)),
        accepted(5, again="x"),
        good(5),
        None,
    ),
    "the published run is accepted again, while a refresh waits": (
        REFRESH,
        accepted(5, again="x"),
        good(5),
        REFRESH,
    ),
    "a run is accepted that a rollback holds authority against: a new one is fetched": (
        replace(JUDGE, tries=2, failing_since=BEFORE),
        accepted(7, again="x"),
        NOTHING,
        replace(FETCH, ready_at=NOW, run_id=run_id(7)),
    ),
    "an older run is accepted": (None, accepted(3), good(5), None),
    "another run is accepted while one waits to be loaded": (LOAD, accepted(3), unloaded(7), LOAD),
    "an extraction fails while a run waits to be loaded": (LOAD, failed(8), unloaded(7), LOAD),
    "loading fails": (LOAD, failed(7, stage=Stage.LOAD), unloaded(7), LOAD_FAILED),
    "loading fails for good": (
        LOAD,
        failed(7, ErrorClass.PERMANENT, Stage.LOAD),
        unloaded(7),
        replace(PARKED, kind=WorkKind.LOAD, error="load failed"),
    ),
    "loading the newer run of a readable day fails": (
        LOAD,
        failed(7, stage=Stage.LOAD),
        unloaded(7, Availability.BEHIND),
        replace(LOAD_FAILED, lane=Lane.REFRESH),
    ),
    "loading a superseded run fails": (
        replace(LOAD, run_id=run_id(8)),
        failed(7, stage=Stage.LOAD),
        unloaded(8),
        replace(LOAD, run_id=run_id(8)),
    ),
    "loading a published run again fails: readers have it still": (
        None,
        failed(7, stage=Stage.LOAD),
        good(7),
        None,
    ),
    "published: done": (LOAD, published(7), good(7), None),
    "published, an older run than the one with authority": (
        LOAD,
        published(5),
        unloaded(7, Availability.BEHIND),
        LOAD,
    ),
    "published by hand, while something newer was to be fetched": (FETCH, published(7), good(7), None),
    "the same run is published again, while a refresh waits": (REFRESH, published(5), good(5), REFRESH),
    "a newer run is published while a refresh waits": (REFRESH, published(7), good(7), None),
    "hidden after a demotion": (
        REJECTED,
        hidden(7),
        Standing(None, Availability.HIDDEN),
        REJECTED,
    ),
    "requeued: the sealed run is judged first, failures do not count any more": (
        GIVEN_UP,
        requeued(7),
        NOTHING,
        replace(JUDGE, lane=Lane.RETRY, ready_at=NOW),
    ),
    "requeued without work": (None, requeued(7), NOTHING, replace(JUDGE, lane=Lane.RETRY, ready_at=NOW)),
    "rolled back to a run whose artifact is there": (FAILED, rolled_back(5, 7, 7), good(5), None),
    "rolled back to a run whose artifact is gone: it is loaded": (
        None,
        rolled_back(5, 7, 7),
        unloaded(5, Availability.HIDDEN),
        replace(LOAD, ready_at=NOW, run_id=run_id(5)),
    ),
    "cancelled: the work stays as it was": (FAILED, cancelled(8), NOTHING, FAILED),
    "cancelled after it was sealed: that run is not judged": (
        JUDGE,
        cancelled(7),
        NOTHING,
        replace(FETCH, run_id=run_id(7)),
    ),
    "cancelled after it was sealed, when too many had failed": (
        replace(JUDGE, tries=3),
        cancelled(7),
        NOTHING,
        replace(FETCH, run_id=run_id(7), tries=3, stop=Stop.MAX_ATTEMPTS),
    ),
    "cancelled after it was accepted: it is loaded": (LOAD, cancelled(7), unloaded(7), LOAD),
    "cancelled without work": (None, cancelled(7), NOTHING, None),
}


@pytest.mark.parametrize(("work", "fact", "standing", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_done_next(
    work: Work | None, fact: PartitionFact, standing: Standing, expected: Work | None
) -> None:
    assert next_work(work, fact, standing, RETRIES, NOW) == expected


@pytest.mark.parametrize(
    ("work", "contract_hash", "expected"),
    [
        (REJECTED, CONTRACT, REJECTED),
        (REJECTED, "another", replace(REJECTED, kind=WorkKind.JUDGE, ready_at=NOW)),
        (
            replace(REJECTED, tries=3, stop=Stop.MAX_ATTEMPTS),
            "another",
            replace(REJECTED, tries=3, kind=WorkKind.JUDGE, ready_at=NOW),
        ),
        (replace(REJECTED, stop=Stop.MANUAL), "another", replace(REJECTED, stop=Stop.MANUAL)),
        (replace(REJECTED, contract_hash=None), "another", replace(REJECTED, contract_hash=None)),  # its seal
        (FAILED, "another", FAILED),
        (LOAD, "another", LOAD),
    ],
)
def test_a_new_contract_judges_again_what_another_rejected(
    work: Work, contract_hash: str, expected: Work
) -> None:
    assert contract_changed(work, contract_hash, NOW) == expected


def test_what_is_parked_is_tried_again_once_its_configuration_changes() -> None:
    seen = setup_seen(PARKED, "setup", NOW)
    assert seen == replace(PARKED, setup="setup")
    assert setup_seen(seen, "setup", SECOND) == seen
    assert setup_seen(seen, "another", SECOND) == replace(
        FAILED, ready_at=SECOND, tries=0, failing_since=None, cause=Cause.PERMANENT
    )
    assert setup_seen(GIVEN_UP, "another", SECOND) == GIVEN_UP


def test_a_refresh_that_was_given_up_is_tried_again_at_the_next_due_point_and_nothing_else_is() -> None:
    given_up = replace(GIVEN_UP, lane=Lane.REFRESH)
    assert due_again(given_up, SECOND) == clear_stop(given_up, SECOND)
    for work in (GIVEN_UP, replace(PARKED, lane=Lane.REFRESH), replace(MANUAL, lane=Lane.REFRESH), FAILED):
        assert due_again(work, SECOND) == work


def test_an_operator_gives_up_and_takes_up_again() -> None:
    marked = mark_terminal(FAILED)
    assert marked == MANUAL
    assert clear_stop(marked, SECOND) == replace(FAILED, ready_at=SECOND, tries=0, failing_since=None)


def test_only_fetching_asks_the_source() -> None:
    assert [kind for kind in WorkKind if kind.asks_source] == [WorkKind.FETCH]


def test_all_stops_but_a_parked_one_are_terminal() -> None:
    assert {stop for stop in Stop if not stop.terminal} == {Stop.PERMANENT}
