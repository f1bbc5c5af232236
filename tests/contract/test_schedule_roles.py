"""R-STATE-2, R-CTL-1: on PostgreSQL, who shares work out judges nothing, and the other way round."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sealbook.errors import Permanent
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.plans import PlanKind, PlanRequest
from sealbook.model.selection import Selection
from sealbook.model.universe import Span
from tests.contract.test_ledger_roles import WHO, Granted, granted
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import staged
from tests.support.schedule import DAY, open_work, work_in, work_of

__all__ = ["granted"]

TERMS = Terms(["google_ads"], budgets={"google_ads": 1_000})
RETRY = PlanRequest(PlanKind.RETRY, Selection(keys=[OTHER]))
BACKFILL = PlanRequest(
    PlanKind.BACKFILL, spans=(Span("google_ads", "1234567890", "campaign_daily", DAY, DAY),)
)
CALLS: dict[str, Callable[[Ledger], object]] = {
    "claim": lambda ledger: ledger.scheduler.claim("x", TERMS, limit=1),
    "plan": lambda ledger: ledger.plans.preview(RETRY, **WHO),
    "pause": lambda ledger: ledger.pauses.pause(Scope("google_ads"), **WHO),
    "share a rate": lambda ledger: ledger.rates.renew("google_ads", "x", 10),
}


@pytest.mark.parametrize("role", ["consumer", "viewer", "extractor", "validator", "loader"])
def test_only_control_shares_work_out(granted: Granted, role: str) -> None:
    with open_ledger(granted.url) as ledger:
        before = work_in(ledger)
        with open_ledger(granted.url_as(role)) as worker:
            for call in CALLS.values():
                with pytest.raises(Permanent, match="permission denied"):
                    call(worker)
        assert work_in(ledger) == before
        assert ledger.reader.schedule.pauses() == []


def test_control_does_all_of_it(granted: Granted) -> None:
    with open_ledger(granted.url_as("control")) as control:
        for call in CALLS.values():
            call(control)
        control.plans.carry_out(control.plans.preview(RETRY, **WHO).plan.id)
        plan = control.plans.preview(BACKFILL, **WHO).plan
        control.plans.carry_out(plan.id)
        control.plans.retry_failed(plan.id, **WHO)
        control.plans.pause(plan.id, **WHO)
        control.plans.resume(plan.id, **WHO)
        control.plans.cancel(plan.id, **WHO)
        with pytest.raises(Permanent, match="permission denied"):
            control.judge([accept(KEY, 9)])


def test_each_does_its_part_under_one_fence(granted: Granted) -> None:
    """R-CTL-4: the extractor tells, the validator judges, the loader publishes what control has claimed."""
    with open_ledger(granted.url) as ledger:
        open_work(ledger, [work_of(KEY, ready_at=ledger.reader.now())])
    with open_ledger(granted.url_as("control")) as control:
        claims = control.scheduler.claim("x", TERMS, limit=9)
        fences = claims.fences
        assert KEY in fences
        with open_ledger(granted.url_as("extractor")) as extractor:
            failed = PartitionFailed(
                key=OTHER,
                run_id=run_id(5),
                attempt="1",
                failed_stage=Stage.EXTRACT,
                error_class=ErrorClass.QUOTA,
                error="used up",
            )
            extractor.runs.tell([failed])
        with open_ledger(granted.url_as("validator")) as validator:
            assert validator.verdicts.judge_under([accept(KEY, 6)], fences).lost == []
            validator.judge([reject(OTHER, 6)])
        with open_ledger(granted.url_as("loader")) as loader:
            assert loader.pointers.swap([staged(KEY, 6)], fences).loaded == (KEY,)
        assert control.scheduler.heartbeat("x", fences) == set()
        control.scheduler.settle({each.id: each.requests for each in claims.reservations})
        assert set(work_in(control)) == {OTHER}
