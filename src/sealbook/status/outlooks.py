"""The schedule, read for people: what is to be done next about the partitions that are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Protocol, TypeVar

from sealbook.ledger.schedule.pauses import Pause, Scope
from sealbook.ledger.schedule.reader import ScheduleReader
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey
from sealbook.model.explanation import Way
from sealbook.model.outlook import Outlook, Prospect
from sealbook.model.plans import Plan
from sealbook.model.retry import Cause, Stop
from sealbook.model.selection import Selection
from sealbook.model.words import counted
from sealbook.model.work import Lane, Work, WorkKind

_AT_ONCE = 1_000


class _HasKey(Protocol):
    @property
    def key(self) -> PartitionKey: ...


ShownT = TypeVar("ShownT", bound=_HasKey)


class Outlooks:
    """What the schedule says of partitions at one moment; only of those that are asked for."""

    def __init__(self, schedule: ScheduleReader, now: datetime) -> None:
        self._schedule = schedule
        self._now = now

    def of(self, key: PartitionKey) -> Outlook | None:
        """Return what is to be done next about a partition; None if nothing is open."""
        return self.of_all([key]).get(key)

    def of_all(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Outlook]:
        """Return what is to be done next about those of some partitions that something is open of."""
        asked = Selection(keys=keys)
        found = self._schedule.open_work(asked) if asked.keys else ()
        return {each.key: self._outlook(each) for each in found}

    def chosen(self, selection: Selection) -> dict[PartitionKey, Outlook]:
        """Return what is to be done next about all that is chosen and open."""
        return {each.key: self._outlook(each) for each in self._schedule.open_work(selection)}

    def stopped(self, selection: Selection) -> Iterator[Outlook]:
        """Yield what is chosen and terminal or parked, in key order."""
        return map(self._outlook, self._schedule.open_work(selection, stopped=True))

    def beside(self, shown: Iterable[ShownT]) -> Iterator[tuple[ShownT, Outlook | None]]:
        """Yield what is shown, in its order, each with its outlook: any number of them."""
        remaining = iter(shown)
        while some := list(islice(remaining, _AT_ONCE)):
            found = self.of_all(each.key for each in some)
            yield from ((each, found.get(each.key)) for each in some)

    def _outlook(self, row: OpenWork) -> Outlook:
        work = row.work
        plan = None if row.plan_id is None else self._plans.get(row.plan_id)
        outlook = Outlook(
            work.key,
            Prospect.WAITING if work.ready_at > self._now else Prospect.READY,
            work.lane,
            work.kind,
            work.ready_at,
            _why(work, plan),
            work.tries,
            work.failing_since,
            work.cause,
            work.error,
            work.run_id,
            stop=work.stop,
            plan_id=row.plan_id,
            ways=_at_once(work, self._now),
        )
        if row.holder is not None and row.expires_at is not None and row.expires_at > self._now:
            return replace(
                outlook,
                prospect=Prospect.HELD,
                since=row.claimed_at,
                until=row.expires_at,
                by=row.holder,
                ways=(_LEASES,),
            )
        if work.stop is not None:
            return _stopped(outlook, row, work.stop)
        if row.paused and plan is not None:
            return _paused_with(outlook, plan)
        pause = self._pause(work.key)
        return outlook if pause is None else _paused(outlook, pause)

    def _pause(self, key: PartitionKey) -> Pause | None:
        """Return the pause of a partition that lasts longest, if there is any."""
        of_key = [each for each in self._pauses if _covers(each.scope, key)]
        return max(of_key, key=lambda each: (each.until is None, each.until or self._now), default=None)

    @cached_property
    def _pauses(self) -> list[Pause]:
        return self._schedule.pauses()

    @cached_property
    def _plans(self) -> dict[int, Plan]:
        return {each.id: each for each in self._schedule.plans()}


def _stopped(outlook: Outlook, row: OpenWork, stop: Stop) -> Outlook:
    return replace(
        outlook,
        prospect=Prospect.TERMINAL if stop.terminal else Prospect.PARKED,
        next_run_at=None,
        why=row.stopped_reason or _why_stopped(row.work, stop),
        since=row.stopped_at,
        by=row.stopped_by,
        ways=(Way("take it up again", f"sealbook state terminal clear {row.key} --reason '…'"),),
    )


def _paused(outlook: Outlook, pause: Pause) -> Outlook:
    begins = outlook.next_run_at
    return replace(
        outlook,
        prospect=Prospect.PAUSED,
        next_run_at=None if pause.until is None or begins is None else max(pause.until, begins),
        why=pause.reason,
        since=pause.since,
        until=pause.until,
        by=pause.actor,
        ways=(_resume(pause.scope),),
    )


def _paused_with(outlook: Outlook, plan: Plan) -> Outlook:
    go_on = Way("go on", f"sealbook backfill resume {plan.name or plan.id} --reason '…'")
    why = f"{_plan_text(plan)} is paused"
    return replace(outlook, prospect=Prospect.PAUSED, next_run_at=None, why=why, ways=(go_on,))


def _covers(scope: Scope, key: PartitionKey) -> bool:
    return (
        scope.source == key.source
        and scope.customer_id in (None, key.customer_id)
        and scope.query_name in (None, key.query_name)
    )


_WHY_IN_LANE = {
    Lane.FRESH: "it is due",
    Lane.RETRY: "an operator asked for it",
    Lane.REFRESH: "it is due again",
    Lane.BACKFILL: "its day is missing",
}


def _why(work: Work, plan: Plan | None) -> str:
    """Say why work is open, and why it is ready when it is."""
    if work.tries:
        return f"{counted(work.tries, 'failure')} in a row, the last {work.cause}"
    if work.cause is Cause.QUOTA:
        return "its quota is used up, which counts as no attempt"
    if plan is not None:
        return f"{_plan_text(plan)} asks for it"
    if work.kind is WorkKind.JUDGE:
        return f"run {work.run_id} is sealed and not judged"
    if work.kind is WorkKind.LOAD:
        return f"run {work.run_id} is accepted and not loaded"
    return _WHY_IN_LANE[work.lane]


def _why_stopped(work: Work, stop: Stop) -> str:
    match stop:
        case Stop.PERMANENT:
            said = "" if work.error is None else f" ({work.error.removeprefix(f'{work.key}: ')})"
            return f"it fails until an operator or the configuration changes something{said}"
        case Stop.MAX_AGE:
            return "its day is older than max_age"
        case Stop.PAST_HORIZON:
            return "its source does not give its day any more: it is past the horizon"
    return f"{counted(work.tries, 'failure')} in a row, which is max_attempts"


def _plan_text(plan: Plan) -> str:
    return f"{plan.kind} {plan.name or plan.id}"


_LEASES = Way("see who works on what", "sealbook control leases")


def _at_once(work: Work, now: datetime) -> tuple[Way, ...]:
    """Return how to have a rejected run judged again before its time; anything else is fetched by hand."""
    if work.ready_at <= now or work.cause is not Cause.REJECTED:
        return ()
    return (Way("try it at once", f"sealbook state retry {work.key} --reason '…'"),)


def _resume(scope: Scope) -> Way:
    options = [f"--source {scope.source}"]
    options += [] if scope.customer_id is None else [f"--customer-id {scope.customer_id}"]
    options += [] if scope.query_name is None else [f"--query-name {scope.query_name}"]
    return Way("go on", f"sealbook state resume {' '.join(options)} --reason '…'")
