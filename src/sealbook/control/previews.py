"""A plan as it is shown before it is carried out, and afterwards: read without any right to act."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sealbook.config import Settings
from sealbook.control.estimating import Estimate, estimate
from sealbook.control.pricing import days_per_request
from sealbook.control.refusing import Refusal
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.schedule.plan_rows import unknown_plan
from sealbook.model.plans import LeftOut, Plan, PlanItem


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan as it is shown: its partitions, what is refused and why, what is left out, how long it takes."""

    plan: Plan
    items: tuple[PlanItem, ...]
    refused: tuple[Refusal, ...] = ()
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    not_over: int = 0
    """Days that a backfill was asked for and that are not over yet."""
    past_horizon: int = 0
    """Days that it was asked for and that their source does not give any more."""
    estimate: Estimate | None = None


def kept_preview(settings: Settings, ledger: LedgerReader, plan_id: int) -> Preview:
    """Return a plan that was previewed before, as far as it is kept: with its partitions."""
    for plan in ledger.schedule.plans():
        if plan.id == plan_id:
            items = tuple(ledger.schedule.plan_items(plan_id))
            return Preview(plan, items, estimate=estimated(settings, ledger, plan, items))
    raise unknown_plan(plan_id)


def estimated(
    settings: Settings, ledger: LedgerReader, plan: Plan, items: Iterable[PlanItem]
) -> Estimate | None:
    """Estimate how long a plan takes; None for one that is done as soon as it is said."""
    if not plan.kind.lasts or not plan.partitions:
        return None
    return estimate(settings.control, days_per_request(settings), ledger.run_store, plan, items)
