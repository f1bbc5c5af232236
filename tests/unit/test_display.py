"""R-PST-5: the display status of a partition, and its cell in the grid; each scenario of ADR-026 by name."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from sealbook.model.display import Cell, Display, cell_of, display_status
from sealbook.model.freshness import Freshness
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import CodeInForce, stale_reasons
from sealbook.model.status import Availability, LastAttempt, PartitionStatus
from tests.support.ledger import KEY, run_id
from tests.support.status import (
    DAY,
    HOUR,
    START,
    cancelled,
    failed,
    hidden,
    judged,
    log,
    published,
    rejected,
    rolled_back,
    sealed,
    status_of,
)

PUBLISHED, BEHIND, HIDDEN, NONE = Availability
POLICY = Freshness((6 * HOUR, 3 * DAY), max_lag=HOUR)


def shown(
    status: PartitionStatus,
    availability: Availability = PUBLISHED,
    *,
    policy: Freshness | None = None,
    upstream: datetime | None = None,
    contract: str | None = None,
    now: datetime = START + 30 * DAY,
) -> Display:
    """Return the display status of a partition whose day ended at START."""
    reasons = status.materialization and stale_reasons(
        status.materialization.at,
        status.code_version,
        deadline=policy.deadline(START, now) if policy else None,
        upstreams=[] if upstream is None else [(KEY, upstream)],
        code=None if contract is None else CodeInForce(contract, START),
    )
    return display_status(status.materialization, status.attempt, availability, stale=bool(reasons))


GOOD = status_of(log(judged(), published()))


def test_never_materialized() -> None:
    assert shown(status_of([]), NONE) is Display.NEVER_MATERIALIZED
    assert shown(status_of(log(sealed(), judged())), NONE) is Display.NEVER_MATERIALIZED


def test_a_success_is_materialized() -> None:
    assert shown(GOOD) is Display.MATERIALIZED


def test_a_failed_retry_keeps_the_materialization() -> None:
    status = status_of(log(judged(), published(), rejected(2)))
    assert status.materialization == GOOD.materialization
    assert shown(status) is Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED


def test_a_failed_attempt_shows_before_staleness() -> None:
    status = status_of(log(judged(), published(), failed(2, Stage.LOAD)))
    assert shown(status, BEHIND, contract="two") is Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED


def test_success_clears_staleness() -> None:
    assert shown(GOOD, contract="two") is Display.STALE
    again = status_of(log(judged(), published(), judged(2, contract="two"), published(2)))
    assert shown(again, contract="two") is Display.MATERIALIZED


def test_judging_again_clears_a_changed_contract_without_fetching_again() -> None:
    again = status_of(log(judged(), published(), judged(contract="two")))
    assert again.materialization == GOOD.materialization
    assert shown(again, contract="two") is Display.MATERIALIZED


def test_a_failure_at_the_very_time_of_the_materialization_is_not_later() -> None:
    [*earlier, publication] = log(judged(), published())
    failure = publication._replace(fact=failed(2), position=publication.position + 1)
    assert shown(status_of([*earlier, publication, failure])) is Display.MATERIALIZED


def test_no_policy_is_never_late() -> None:
    assert shown(GOOD, now=START + 9_999 * DAY) is Display.MATERIALIZED


def test_an_upstream_that_was_materialized_later_makes_it_stale() -> None:
    assert GOOD.materialization is not None
    assert shown(GOOD, upstream=GOOD.materialization.at) is Display.MATERIALIZED
    assert shown(GOOD, upstream=GOOD.materialization.at + HOUR) is Display.STALE


def test_a_code_version_that_was_not_recorded_is_not_fresh() -> None:
    assert shown(status_of(log(judged(contract=None), published())), contract="one") is Display.STALE


def test_a_cancelled_attempt_changes_no_display() -> None:
    assert shown(status_of(log(judged(), published(), sealed(2), cancelled(2)))) is Display.MATERIALIZED
    assert shown(status_of(log(sealed(), cancelled())), NONE) is Display.NEVER_MATERIALIZED


def test_an_extraction_that_failed_for_good_is_never_materialized() -> None:
    status = status_of(log(failed()))
    assert shown(status, NONE) is Display.NEVER_MATERIALIZED
    assert cell(status, NONE) is Cell.FAILED


def test_a_demoted_partition_is_withdrawn() -> None:
    status = status_of(log(judged(), published(), rejected(), hidden()))
    assert status.materialization == GOOD.materialization
    assert shown(status, HIDDEN) is Display.WITHDRAWN


def test_a_rollback_materializes_the_earlier_run_anew() -> None:
    status = status_of(
        log(judged(), published(), judged(2), published(2), rolled_back(1, 2), published(1)),
    )
    assert status.materialization is not None
    assert status.materialization.run_id == run_id(1)
    assert status.materialization.at == START + 6 * HOUR
    assert shown(status) is Display.MATERIALIZED


def test_a_due_point_that_passed_makes_it_stale_when_its_deadline_does() -> None:
    assert shown(GOOD, policy=POLICY, now=START + 7 * HOUR) is Display.STALE
    assert shown(GOOD, policy=POLICY, now=START + 6 * HOUR) is Display.MATERIALIZED


def test_a_settled_day_is_never_late_again() -> None:
    [*earlier, publication] = log(judged(), published())
    status = status_of([*earlier, publication._replace(at=START + 3 * DAY)])
    assert shown(status, policy=POLICY, now=START + 900 * DAY) is Display.MATERIALIZED


def cell(
    status: PartitionStatus,
    availability: Availability = PUBLISHED,
    *,
    stale: bool = False,
    attempted: bool = True,
    running: bool = False,
    provisional: bool = False,
) -> Cell:
    display = display_status(status.materialization, status.attempt, availability, stale=stale)
    return cell_of(display, status.attempt, attempted=attempted, running=running, provisional=provisional)


UNTOUCHED, REJECTED = status_of([]), status_of(log(rejected()))
RETRIED = status_of(log(judged(), published(), rejected(2)))

CELLS: list[tuple[PartitionStatus, dict[str, Any], Cell]] = [
    (UNTOUCHED, {"attempted": False}, Cell.MISSING),
    (UNTOUCHED, {"attempted": False, "provisional": True}, Cell.PROVISIONAL),
    (UNTOUCHED, {"attempted": False, "running": True}, Cell.RUNNING),
    (UNTOUCHED, {}, Cell.PENDING),
    (UNTOUCHED, {"provisional": True}, Cell.PENDING),
    (REJECTED, {}, Cell.FAILED),
    (REJECTED, {"running": True}, Cell.RUNNING),
    (GOOD, {}, Cell.MATERIALIZED),
    (GOOD, {"running": True}, Cell.MATERIALIZED),
    (GOOD, {"provisional": True}, Cell.PROVISIONAL),
    (GOOD, {"stale": True}, Cell.STALE),
    (GOOD, {"stale": True, "running": True}, Cell.RUNNING),
    (RETRIED, {"stale": True}, Cell.LAST_ATTEMPT_FAILED),
    (RETRIED, {"running": True}, Cell.RUNNING),
]


@pytest.mark.parametrize(("status", "more", "expected"), CELLS)
def test_the_cell_of_the_grid(status: PartitionStatus, more: dict[str, Any], expected: Cell) -> None:
    assert cell(status, **more) is expected


@pytest.mark.parametrize("running", [False, True])
def test_what_is_withdrawn_shows_as_withdrawn(running: bool) -> None:
    assert cell(RETRIED, HIDDEN, running=running) is Cell.WITHDRAWN


def test_every_cell_has_a_letter_of_its_own() -> None:
    assert len({each.letter for each in Cell}) == len(Cell)
    assert all(len(each.letter) == 1 for each in Cell)


@pytest.mark.parametrize("availability", Availability)
def test_consumers_get_rows_of_what_is_published_or_behind(availability: Availability) -> None:
    assert availability.readable is (availability in (PUBLISHED, BEHIND))


def test_an_attempt_is_no_reason_without_a_materialization() -> None:
    attempt: LastAttempt | None = REJECTED.attempt
    assert display_status(None, attempt, NONE, stale=False) is Display.NEVER_MATERIALIZED
