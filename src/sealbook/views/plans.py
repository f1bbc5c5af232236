"""Plans as they are shown: what they do to how many partitions, at which cost, by which command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sealbook.model.plans import LeftOut, PlanKind, PlanState
from sealbook.model.spans import duration_text
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.control.previews import Preview
    from sealbook.model.plans import Plan

MANY = 20
"""Above so many partitions somebody has to say that it is meant (R-CTL-8)."""

COMMANDS = {
    PlanKind.RETRY: "state retry",
    PlanKind.REPROCESS: "state reprocess",
    PlanKind.BACKFILL: "state backfill",
    PlanKind.MARK: "state terminal mark",
    PlanKind.CLEAR: "state terminal clear",
}
_DONE = {
    PlanKind.RETRY: "pending again, to be judged by a control loop or by sealbook validate",
    PlanKind.REPROCESS: "to be fetched again by a control loop; what is published stays meanwhile",
    PlanKind.BACKFILL: "to be fetched by a control loop",
    PlanKind.MARK: "given up: nothing more is tried before sealbook state terminal clear",
    PlanKind.CLEAR: "taken up again",
}
_LEFT_OUT = {
    LeftOut.GOOD: "good: --force fetches them again",
    LeftOut.OPEN: "being worked on, or in another plan",
    LeftOut.STOPPED: "given up or parked: sealbook state terminal list",
}


def plan_text(plan: Plan) -> str:
    """Say what a plan does, to how many partitions, and what that costs at most."""
    cost = f", {counted(plan.requests, 'request')} at most" if plan.requests else ""
    return f"Plan {plan.id}: {plan.kind} of {counted(plan.partitions, 'partition')}{cost}."


def done_text(plan: Plan) -> str:
    """Say what became of the partitions of a plan that was carried out."""
    return f"{counted(plan.partitions, 'partition', 'is', 'are')} {_DONE[plan.kind]}."


def carry_out_command(plan: Plan, *, yes: bool = False) -> str:
    """Return the command that carries a plan out."""
    return f"sealbook {COMMANDS[plan.kind]} --plan {plan.id}{' --yes' if yes else ''}"


def notes_of(shown: Preview) -> list[str]:
    """Say what a plan leaves out and why, and how long it takes."""
    return [*_left_out(shown), *_estimates(shown)]


def _left_out(shown: Preview) -> list[str]:
    said = [
        f"Left out: {counted(shown.left_out[why], 'partition', 'is', 'are')} {way}."
        for why, way in _LEFT_OUT.items()
        if shown.left_out.get(why)
    ]
    if shown.not_over:
        said.append(f"Left out: {counted(shown.not_over, 'partition')} of days that are not over yet.")
    if shown.past_horizon:
        said.append(f"Left out: {counted(shown.past_horizon, 'partition')} past the horizon of their source.")
    return said


def _estimates(shown: Preview) -> list[str]:
    if shown.estimate is None:
        return []
    said = []
    if shown.estimate.by_pace is not None:
        pace = duration_text(shown.estimate.by_pace.total_seconds())
        said.append(f"About {pace} by the pace of the last runs.")
    said += (
        f"{each.source}: {counted(each.requests, 'request')} of {each.requests_per_day:,} a day, of which"
        f" {each.share:.0%} are for backfills: {duration_text(each.days * 86_400)} if nothing is lent."
        for each in shown.estimate.budgets
    )
    return said


def plan_dict(shown: Preview, *, carried_out: bool | None = None) -> dict[str, Any]:
    """Return a plan as one object; whether it was carried out, its state says unless it is given."""
    plan, estimate = shown.plan, shown.estimate
    by_pace = None if estimate is None else estimate.by_pace
    is_done = plan.state is not PlanState.PREVIEWED if carried_out is None else carried_out
    return {
        "plan_id": plan.id,
        "kind": plan.kind,
        "name": plan.name,
        "partitions": plan.partitions,
        "requests": plan.requests,
        "carried_out": is_done,
        "left_out": {
            **{why.value: shown.left_out.get(why, 0) for why in LeftOut},
            "not_over": shown.not_over,
            "past_horizon": shown.past_horizon,
        },
        "seconds_by_pace": None if by_pace is None else by_pace.total_seconds(),
        "budgets": [] if estimate is None else estimate.budgets,
        "refused": [each.to_dict() for each in shown.refused],
        "items": [{"partition": str(item.key), "standing": item.standing} for item in shown.items],
    }
