"""What operators do about partitions: shown as a plan, then carried out as shown (R-CTL-8, R-CTL-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

from sealbook.config import Settings
from sealbook.control.backfills import Backfill, find_backfill, list_backfills
from sealbook.control.previews import Preview, estimated, kept_preview
from sealbook.control.pricing import days_per_request
from sealbook.control.refusing import Refusal, why_not
from sealbook.control.spans import Wanted, spans_of
from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import PartitionKey, RunId, Status
from sealbook.model.horizons import NO_HORIZONS, Horizons
from sealbook.model.plans import Plan, PlanItem, PlanKind, PlanRequest
from sealbook.model.ranges import DAY_BY_DAY
from sealbook.model.selection import Selection
from sealbook.raw import RawReader


class Operator:
    """Everything that an operator may do about partitions, one call for each; `Book.operator` has it.

    What concerns many partitions returns a `Preview`, which `carry_out` does as it was shown, by its id; a
    preview changes nothing. Each action is in the log of overrides.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        raw: Callable[[], RawReader],
        check: Callable[[Selection], None],
        horizons: Callable[[], Horizons] = lambda: NO_HORIZONS,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._raw = raw
        self._check = check
        self._horizons = horizons

    def retry(self, selection: Selection, *, actor: str, reason: str) -> Preview:
        """Have failed partitions judged again; each must still have a sealed run (R-CTL-8)."""
        self._check(selection)
        failed = [] if selection.is_everything else list(self._failed(selection))
        gone = failed and self._without_runs(failed)
        request = PlanRequest(PlanKind.RETRY, selection, without=tuple(gone or ()))
        return self._preview(request, actor, reason)

    def reprocess(self, selection: Selection, *, actor: str, reason: str) -> Preview:
        """Have another run fetched of partitions that were judged; what is published stays meanwhile."""
        self._check(selection)
        past = () if selection.is_everything else tuple(self._past_horizon(selection))
        return self._preview(PlanRequest(PlanKind.REPROCESS, selection, without=past), actor, reason)

    def backfill(
        self, selection: Selection, *, actor: str, reason: str, name: str | None = None, force: bool = False
    ) -> Preview:
        """Have days fetched that lack; those that are good too, with `force`. Its name is for later."""
        wanted = self._wanted(selection)
        request = PlanRequest(PlanKind.BACKFILL, selection, wanted.spans, force)
        preview = self._preview(request, actor, reason, name)
        return replace(preview, not_over=wanted.not_over, past_horizon=wanted.past_horizon)

    def mark(self, selection: Selection, *, actor: str, reason: str) -> Preview:
        """Give up what is open or has failed: it is terminal until it is cleared (R-CTL-5)."""
        self._check(selection)
        return self._preview(PlanRequest(PlanKind.MARK, selection), actor, reason)

    def clear(self, selection: Selection, *, actor: str, reason: str) -> Preview:
        """Take up what is terminal or parked; its failures so far do not count any more."""
        self._check(selection)
        return self._preview(PlanRequest(PlanKind.CLEAR, selection), actor, reason)

    def previewed(self, plan_id: int) -> Preview:
        """Return a plan that was previewed before."""
        return kept_preview(self._settings, self._ledger.reader, plan_id)

    def carry_out(self, plan_id: int, *, actor: str | None = None) -> Plan:
        """Do what was previewed, all of it, or nothing if the world has moved (Drifted says how)."""
        return self._ledger.plans.carry_out(plan_id, actor=actor)

    def backfills(self) -> list[Backfill]:
        """Return the backfills that were carried out, the newest first."""
        return list_backfills(self._ledger.reader.schedule)

    def find_backfill(self, name: str) -> Backfill:
        """Return a backfill by its name or number: the newest of a name."""
        return find_backfill(self._ledger.reader.schedule, name)

    def pause_backfill(self, name: str, *, actor: str, reason: str) -> Backfill:
        """Begin nothing more of a backfill until it resumes; what is being worked on goes on."""
        plan = self._ledger.plans.pause(self.find_backfill(name).plan.id, actor=actor, reason=reason)
        return self._now(plan)

    def resume_backfill(self, name: str, *, actor: str, reason: str) -> Backfill:
        """Go on with a backfill that was paused."""
        plan = self._ledger.plans.resume(self.find_backfill(name).plan.id, actor=actor, reason=reason)
        return self._now(plan)

    def cancel_backfill(self, name: str, *, actor: str, reason: str) -> Backfill:
        """Fetch no more of a backfill: what it leaves undone is given up until it is wanted again."""
        plan = self._ledger.plans.cancel(self.find_backfill(name).plan.id, actor=actor, reason=reason)
        return self._now(plan)

    def retry_backfill(
        self, name: str, *, actor: str, reason: str, dry_run: bool = False
    ) -> list[PartitionKey]:
        """Take up what has failed of a backfill at once, and return which partitions that are."""
        plan_id = self.find_backfill(name).plan.id
        return self._ledger.plans.retry_failed(plan_id, actor=actor, reason=reason, dry_run=dry_run)

    def pause(self, scope: Scope, *, actor: str, reason: str, until: datetime | None = None) -> None:
        """Begin nothing more of a source, or of a customer or a query of it."""
        self._check(scope.selection)
        if until is not None and until <= (now := self._ledger.reader.now()):
            raise InvalidInput.of("until", until.isoformat(), f"a time after now, {now:%Y-%m-%d %H:%M} UTC")
        self._ledger.pauses.pause(scope, actor=actor, reason=reason, until=until)

    def resume(self, scope: Scope, *, actor: str, reason: str) -> None:
        """Go on with what was paused, exactly as it was."""
        self._ledger.pauses.resume(scope, actor=actor, reason=reason)

    def cancel(self, run_id: RunId, *, actor: str, reason: str, dry_run: bool = False) -> list[PartitionKey]:
        """Stop a run on purpose, and return which of its partitions will not be done."""
        left = self._ledger.runs.cancel_run(run_id, actor=actor, reason=reason, dry_run=dry_run)
        self._ledger.projector().catch_up()
        return left

    def _preview(self, request: PlanRequest, actor: str, reason: str, name: str | None = None) -> Preview:
        ranges = days_per_request(self._settings) if request.kind.asks_source else DAY_BY_DAY
        found = self._ledger.plans.preview(request, actor=actor, reason=reason, name=name, ranges=ranges)
        items = tuple(found.items)
        return Preview(
            found.plan,
            items,
            tuple(self._refused(request, items)),
            found.left_out,
            estimate=estimated(self._settings, self._ledger.reader, found.plan, items),
        )

    def _refused(self, request: PlanRequest, items: Iterable[PlanItem]) -> Iterator[Refusal]:
        """Yield what was named, or chosen, and cannot be done; of a backfill that is counted."""
        if request.kind is PlanKind.BACKFILL:
            return
        done = {item.key for item in items}
        named = [key for key in request.selection.keys if key not in done]
        horizons = self._horizons() if request.kind is PlanKind.REPROCESS else NO_HORIZONS
        for key in dict.fromkeys((*named, *request.without)):
            if horizons.is_past(key):
                yield Refusal(
                    key, horizons.why(key.source), "What is sealed of it is the only copy: keep it."
                )
            else:
                yield why_not(self._ledger.reader, self._raw, request.kind, key)

    def _failed(self, selection: Selection) -> Iterator[PartitionKey]:
        chosen = replace(selection, statuses=(Status.FAILED,))
        return (state.key for state in self._ledger.reader.states(chosen))

    def _past_horizon(self, selection: Selection) -> Iterator[PartitionKey]:
        """Yield what was judged, is chosen, and cannot be fetched any more."""
        horizons = self._horizons()
        chosen = _before(selection, max(horizons.first_days.values(), default=date.min))
        if chosen is not None:
            states = self._ledger.reader.states(chosen)
            yield from (state.key for state in states if horizons.is_past(state.key))

    def _without_runs(self, keys: Iterable[PartitionKey]) -> set[PartitionKey]:
        """Return the partitions that have no sealed run."""
        chosen = set(keys)
        return chosen - {each.key for each in self._raw().sealed(Selection(keys=chosen))}

    def _wanted(self, selection: Selection) -> Wanted:
        return spans_of(self._settings.sources, selection, self._ledger.reader.now(), self._horizons())

    def _now(self, plan: Plan) -> Backfill:
        return Backfill(plan, self._ledger.reader.schedule.progress(plan.id))


def _before(selection: Selection, day: date) -> Selection | None:
    """Choose only earlier days, where partitions are not named; None if there are none."""
    if selection.keys:
        return selection
    if day <= (selection.since or date.min):
        return None
    last = day - timedelta(days=1)
    return replace(selection, until=min(last, selection.until or last))
