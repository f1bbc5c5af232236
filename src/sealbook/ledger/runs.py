"""Runs as the ledger keeps them: it opens them, numbers their steps, and says when they have ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, func, select, update
from ulid import ULID

from sealbook.errors import IllegalMove, InvalidInput, NotFound
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.append import append, append_new, lock_runs
from sealbook.ledger.events.facts import counted_once
from sealbook.ledger.events.horizon import refuse_from_the_future
from sealbook.ledger.events.replay import replay
from sealbook.ledger.events.retention import beginning
from sealbook.ledger.events.rows import read_events
from sealbook.ledger.events.snapshots import ended_runs, newest_unended, read_projected
from sealbook.ledger.events.tables import newest_run, run_head
from sealbook.ledger.run_partitions import PLANNED, run_partitions
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.status.scopes import claim_runs
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.fences import lock_held
from sealbook.ledger.work.port import Follower
from sealbook.model import (
    RunEvent,
    RunId,
    RunSnapshot,
    RunStatus,
    StepStatus,
)
from sealbook.model.claims import Fences
from sealbook.model.failures import ErrorClass
from sealbook.model.keys import PartitionKey, newest_run_prefix
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFailed,
    PartitionSealed,
    Stage,
)
from sealbook.model.run_end import Progress, run_end
from sealbook.model.scope import DEFAULT_SCOPE, Scope
from sealbook.model.selection import Selection
from sealbook.model.step_events import (
    run_ended,
    run_queued,
    run_started,
    step_completed,
    step_failed,
    step_started,
)

_LEFT = "left"
"""The attempt of a failure that is told by another than who failed."""


class RunWriter:
    """The port of whoever carries runs out."""

    def __init__(
        self, database: Database, clock: LedgerClock, follower: Follower, scope: Scope = DEFAULT_SCOPE
    ) -> None:
        self._database = database
        self._clock = clock
        self._follower = follower
        self._scope = scope

    def open_run(self) -> RunId:
        """Open a run, and return its id: that of this moment, or just past the newest known one (R-RUN-2)."""
        return self._database.write(self._open)

    def open_run_under(self, fences: Fences) -> RunId:
        """Open a run for what is held under these fences, and note that for whoever takes over."""

        def work(connection: Connection) -> RunId:
            rows = work_rows.lock(connection, lock_held(connection, fences))
            run_id = self._open(connection)
            work_rows.write(connection, (replace(row, claim_run_id=run_id) for row in rows.values()))
            return run_id

        return self._database.write(work)

    def _open(self, connection: Connection) -> RunId:
        opened = connection.execute(select(newest_run.c.run_id).with_for_update()).scalar_one()
        at = self._clock.now(connection)
        newer = map(_next, filter(None, (opened, _known(connection, at))))
        made = max([ULID.from_datetime(at), *newer])
        run_id = RunId(str(made))
        connection.execute(update(newest_run).values(run_id=run_id))
        claim_runs(connection, [run_id], self._scope)
        append_new(connection, [run_queued(run_id)], at)
        return run_id

    def open_steps(
        self, stage: Stage, runs: Iterable[RunId], planned: Iterable[Selection] = ()
    ) -> dict[RunId, int]:
        """Begin a step of each run that has not ended, and return the numbers of its attempts.

        `planned` is what an extraction sets out to do; the run has not ended before all of it has.
        """
        wanted, planned = sorted(set(runs)), list(planned)
        detail = {PLANNED: [each.to_dict() for each in planned]} if planned else {}

        def work(connection: Connection) -> dict[RunId, int]:
            refuse_from_the_future(connection, wanted, self._clock.now(connection))
            lock_runs(connection, wanted)
            attempts: dict[RunId, int] = {}
            events: list[RunEvent] = []
            for run in wanted:
                snapshot = _snapshot(connection, run)
                if snapshot.last_event_seq == 0:  # of an id that nobody has opened
                    claim_runs(connection, [run], self._scope)
                if snapshot.status.final:
                    continue
                attempts[run] = snapshot.next_attempt(stage)
                if snapshot.status is RunStatus.PENDING:
                    events.append(run_started(run))
                events.append(step_started(run, stage, attempt=attempts[run], detail=detail))
            append_new(connection, events, self._clock.now(connection))
            return attempts

        return self._database.write(work)

    def tell(
        self, facts: Iterable[PartitionSealed | PartitionFailed], under: Fences | None = None
    ) -> list[PartitionKey]:
        """Append what came of partitions; one that had failed in the same run is counted so no more.

        Of what is worked on `under` claims, that which is no longer held is left out, and returned (R-CTL-4).
        """
        told = list(facts)
        if not told:
            return []

        def work(connection: Connection) -> list[PartitionKey]:
            held = None if under is None else lock_held(connection, under)
            mine = [fact for fact in told if held is None or fact.key in held]
            lock_runs(connection, {fact.run_id for fact in mine})
            at = self._clock.now(connection)
            events = [fact.to_event() for fact in counted_once(connection, mine)]
            results = append(connection, events, at)
            new = [fact for fact, result in zip(mine, results, strict=True) if result.persisted]
            self._follower.follow(connection, new, at)
            return [fact.key for fact in told if held is not None and fact.key not in held]

        return self._database.write(work, repeatable=True)

    def close_steps(self, stage: Stage, attempts: Mapping[RunId, int], error: str | None = None) -> None:
        """End attempts of a step: completed, or failed with an error. What a run's end has ended stays so."""

        def work(connection: Connection) -> None:
            lock_runs(connection, attempts)
            events = [
                step_completed(run, stage, attempt=number)
                if error is None
                else step_failed(run, stage, attempt=number, error=error)
                for run, number in attempts.items()
                if not _snapshot(connection, run).status.final
            ]
            append_new(connection, events, self._clock.now(connection))

        self._database.write(work, repeatable=True)

    def end_runs(self, runs: Iterable[RunId]) -> dict[RunId, RunStatus]:
        """End the runs of which each partition that they set out to do has ended; return how (R-RUN-3)."""
        wanted = set(runs)
        with self._database.read() as connection:  # most have ended long ago, and stay so
            wanted -= ended_runs(connection, wanted)
        ended: dict[RunId, RunStatus] = {}
        for run in sorted(wanted):
            status = self._database.write(partial(self._end, run), repeatable=True)
            if status is not None:
                ended[run] = status
        return ended

    def end_unended(self) -> dict[RunId, RunStatus]:
        """End those of the newest runs that were killed when all was done but to say so."""
        with self._database.read() as connection:
            unended = newest_unended(connection)
        return self.end_runs(map(RunId, filter(_is_run_id, unended)))

    def fail_to_begin(self, run_id: RunId, error: str) -> RunStatus | None:
        """End a run whose first work could not begin, as there is nothing to go on with (R-RUN-3).

        One that somebody has worked on before, or is at work on, goes on.
        """

        def work(connection: Connection) -> RunStatus | None:
            lock_runs(connection, [run_id])
            snapshot = _snapshot(connection, run_id)
            attempts = sum(len(step.attempts) for step in snapshot.steps.values())
            if snapshot.status.final or attempts > 1:
                return None
            status = run_end(run_partitions(connection, run_id).values(), never_began=True)
            if status is not None:
                ended = [*_open_steps(snapshot, error), run_ended(run_id, status, error=error)]
                append_new(connection, ended, self._clock.now(connection))
            return status

        return self._database.write(work, repeatable=True)

    def leave(self, run_id: RunId, keys: Iterable[PartitionKey], error: str) -> None:
        """Say of partitions that a run set out to do that it will not: whoever fetched them has lost them.

        What became of a partition in the run before stays so. What is to be done about it next is not changed
        by this: that is with whoever has it by now.
        """
        wanted = list(keys)

        def work(connection: Connection) -> None:
            lock_runs(connection, [run_id])
            if _snapshot(connection, run_id).status.final:
                return
            partitions = run_partitions(connection, run_id)
            left = [
                PartitionFailed(
                    key=key,
                    run_id=run_id,
                    attempt=_LEFT,
                    failed_stage=Stage.EXTRACT,
                    error_class=ErrorClass.TRANSIENT,
                    error=error,
                )
                for key in wanted
                if key not in partitions or partitions[key].progress is Progress.PLANNED
            ]
            append(connection, [fact.to_event() for fact in left], self._clock.now(connection))

        self._database.write(work, repeatable=True)

    def cancel_run(
        self, run_id: RunId, *, actor: str, reason: str, dry_run: bool = False
    ) -> list[PartitionKey]:
        """Stop a run on purpose, and return which of its partitions will not be done; it is logged (R-CTL-3).

        A dry run only says which they are.
        """
        check_author(actor, reason)

        def work(connection: Connection) -> list[PartitionKey]:
            lock_runs(connection, [run_id])
            snapshot = _snapshot(connection, run_id)
            if snapshot.last_event_seq == 0:
                raise NotFound(f"there is no run {run_id}", remedy="`sealbook runs` lists the runs.")
            if snapshot.status.final:
                raise IllegalMove(f"run {run_id} has ended already: {snapshot.status}")
            left = [
                PartitionCancelled(key=key, run_id=run_id, actor=actor, reason=reason)
                for key, each in run_partitions(connection, run_id).items()
                if not each.progress.ended
            ]
            keys = [fact.key for fact in left]
            if dry_run:
                return keys
            error = f"stopped by {actor}: {reason}"
            end = [*_open_steps(snapshot, error), run_ended(run_id, RunStatus.CANCELLED, error=error)]
            at = self._clock.now(connection)
            append_new(connection, [*(fact.to_event() for fact in left), *end], at)
            self._follower.follow(connection, left, at)
            log_override(connection, Action.CANCEL, keys, actor=actor, reason=reason, at=at, run_id=run_id)
            return keys

        return self._database.write(work)

    def _end(self, run_id: RunId, connection: Connection) -> RunStatus | None:
        lock_runs(connection, [run_id])
        snapshot = _snapshot(connection, run_id)
        if snapshot.status.final:
            return None
        status = run_end(run_partitions(connection, run_id).values())
        if status is not None:
            error = "nothing of it was accepted" if status is RunStatus.FAILED else None
            left_open = _open_steps(snapshot, "the run ended without it: others did what it set out to do")
            append_new(
                connection, [*left_open, run_ended(run_id, status, error=error)], self._clock.now(connection)
            )
        return status


def _open_steps(snapshot: RunSnapshot, error: str) -> Iterator[RunEvent]:
    """End what is still open when a run ends: attempts that died, or that another command is at."""
    for name, step in snapshot.steps.items():
        for attempt in step.attempts:
            if attempt.status is StepStatus.RUNNING:
                yield step_failed(snapshot.run_id, name, attempt=attempt.logical_attempt_id, error=error)


def _next(run_id: str) -> ULID:
    return ULID.from_int(int(ULID.from_str(run_id)) + 1)


def _known(connection: Connection, at: datetime) -> str | None:
    """Return the newest run that the log knows, be it opened elsewhere, but not one from the future."""
    bound = newest_run_prefix(at)
    while True:
        query = select(func.max(run_head.c.run_id)).where(run_head.c.run_id < bound)
        newest: str | None = connection.execute(query).scalar()
        if newest is None or _is_run_id(newest):
            return newest
        bound = newest  # another engine's: its ids have an order of their own


def _is_run_id(text: str) -> bool:
    try:
        RunId(text)
    except InvalidInput:
        return False
    return True


def _snapshot(connection: Connection, run_id: str) -> RunSnapshot:
    projected = read_projected(connection, run_id)
    base = projected.snapshot if projected and not projected.stale else beginning(connection, run_id)
    return replay(partial(read_events, connection), base).snapshot
