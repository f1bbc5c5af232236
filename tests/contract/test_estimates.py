"""How long a backfill takes: by the pace of the runs that have ended, and by the budget of its source."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sealbook.config import ControlSettings
from sealbook.control.estimating import BudgetShare, Estimate, estimate
from sealbook.ledger import Ledger, open_ledger
from sealbook.model.partition_events import Stage
from sealbook.model.plans import PlanKind, PlanRequest, Previewed
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest, Stretch
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, Span
from tests.support.partition_facts import sealed
from tests.support.schedule import DAY, SetClock, key_of

CONTROL = ControlSettings(requests_per_day={"demo": 100, "other": 7})
KEYS = [key_of("a", day) for day in range(2)]


def previewed(ledger: Ledger) -> Previewed:
    """Preview a backfill of ten days, of three requests each."""
    spans = (Span("demo", "b", "clicks", DAY, DAY + timedelta(days=9)),)
    request = PlanRequest(PlanKind.BACKFILL, spans=spans, costs={AssetName("demo", "clicks"): 3})
    return ledger.plans.preview(request, actor="ann", reason="so it is")


def sealed_within(ledger: Ledger, clock: SetClock, span: timedelta) -> None:
    """Carry out a run that seals two partitions, and is cancelled after a while."""
    run = ledger.open_run()
    ledger.runs.open_steps(Stage.EXTRACT, [run], [Selection(keys=KEYS)])
    ledger.runs.tell([replace(sealed(1, key), run_id=run) for key in KEYS])
    clock.now += span
    ledger.runs.cancel_run(run, actor="ann", reason="enough")
    ledger.projector().catch_up()


def test_before_any_run_has_ended_only_the_budget_tells(ledger_url: str) -> None:
    with open_ledger(ledger_url) as ledger:
        plan, items, _ = previewed(ledger)
        found = estimate(CONTROL, DAY_BY_DAY, ledger.reader.run_store, plan, items)
    assert found == Estimate(None, (BudgetShare("demo", 30, 100, 0.15),))
    assert found.budgets[0].days == 2.0


def test_the_pace_is_that_of_the_last_runs(ledger_url: str) -> None:
    clock = SetClock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        for seconds in (20, 60):
            sealed_within(ledger, clock, timedelta(seconds=seconds))
        plan, items, _ = previewed(ledger)
        found = estimate(CONTROL, DAY_BY_DAY, ledger.reader.run_store, plan, items)
    assert found.by_pace == timedelta(seconds=10 * 80 / 4)


def test_days_of_one_request_cost_one_whatever_other_sources_cost(ledger_url: str) -> None:
    """A plan of two sources: ten days of one are two requests, those of the other are ten."""
    ranges = DaysPerRequest({AssetName("demo", "clicks"): (Stretch(0, 7),)})
    last = DAY + timedelta(days=9)
    spans = tuple(Span(source, "b", "clicks", DAY, last) for source in ("demo", "other"))
    with open_ledger(ledger_url) as ledger:
        request = PlanRequest(PlanKind.BACKFILL, spans=spans)
        plan, items, _ = ledger.plans.preview(request, actor="ann", reason="so it is", ranges=ranges)
        found = estimate(CONTROL, ranges, ledger.reader.run_store, plan, items)
    assert (plan.partitions, plan.requests) == (20, 12)
    assert [(each.source, each.requests) for each in found.budgets] == [("demo", 2), ("other", 10)]
