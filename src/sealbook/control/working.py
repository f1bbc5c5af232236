"""What is done about claims: run through the stages under a heartbeat, settled, and let go of."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from sealbook.config import SourceSettings
from sealbook.control.holding import Held, heartbeat
from sealbook.control.tally import Tally
from sealbook.extract.allowance import Allowance
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey, RunId
from sealbook.model.claims import Claim, Claims, Fences, ranges_of
from sealbook.model.ranges import up_to_gap
from sealbook.model.retry import Cause
from sealbook.model.work import Undone, WorkKind
from sealbook.pipeline import StageBatch
from sealbook.pipeline.steps import reason
from sealbook.stopping import uninterrupted

LEFT = "its worker was lost"
_NOTHING_CAME = Undone(Cause.TRANSIENT, "nothing came of it, and nothing says why")


class Stages(Protocol):
    """Whoever does what was claimed: `Pipeline`, on Spark."""

    def work(
        self,
        claims: Iterable[Claim],
        run_id: RunId | None,
        under: Fences,
        allowances: Mapping[str, Allowance],
    ) -> Generator[StageBatch, None, None]:
        """Do what was claimed, and yield the results of each stage as they come."""


@dataclass(frozen=True)
class Worker:
    """Works on claims, one batch after the other."""

    ledger: Ledger
    stages: Stages
    sources: Mapping[str, SourceSettings]
    lease: timedelta
    budgets: Mapping[str, int] = field(default_factory=dict)

    def work(
        self,
        claims: Claims,
        parts: Mapping[str, float],
        on_progress: Callable[[], object] = lambda: None,
    ) -> Tally:
        """Do what was claimed, and return what came of it; `parts` are those of the limits of sources.

        However it ends, nothing stays held, what was reserved is settled, and the run's log says what became
        of each partition that it set out to do.
        """
        until = time.time() + self.lease.total_seconds()
        fetches = [claim for claim in claims if claim.kind is WorkKind.FETCH]
        allowances = {
            source: Allowance(parts.get(source, 1.0), source in self.budgets, until)
            for source in self.sources
        }
        tally = Tally()
        run_id: RunId | None = None
        with heartbeat(self.ledger, claims, self.lease, parts) as held:
            try:
                self._refuse_unknown(claims, held)
                with uninterrupted():
                    # First: who opens a run takes the place of the one that was noted before.
                    tell_left(self.ledger, _left(claims))
                    run_id = self._open_run(fetches) if fetches else None
                mine = self._whole(claims, held)
                with closing(self.stages.work(mine, run_id, held, allowances)) as batches:
                    for batch in batches:
                        tally.add(batch)
                        on_progress()
            except BaseException as error:
                with uninterrupted():
                    self.ledger.scheduler.settle(_spent(claims, tally, broke_off=run_id is not None))
                    self.ledger.scheduler.release(claims.fences)
                    self._end_run(run_id, fetches, f"{LEFT}: {reason(error)}")
                raise
        with uninterrupted():
            self.ledger.scheduler.settle(_spent(claims, tally, broke_off=False))
            self._finish(claims, tally)
            self._end_run(run_id, fetches, "it is another worker's by now, or the lease ran out")
        return tally

    def _refuse_unknown(self, claims: Claims, held: Held) -> None:
        """Park what the settings do not have any more: it would fail a whole batch, and each time."""
        refused = {
            claim.key: Undone(Cause.PERMANENT, why)
            for claim in claims
            if claim.kind is not WorkKind.LOAD and (why := self._unknown(claim)) is not None
        }
        if refused:
            self.ledger.scheduler.put_off(refused, claims.fences)
            held.keep(held.keys() - refused.keys())

    def _unknown(self, claim: Claim) -> str | None:
        key = claim.key
        source = self.sources[key.source]  # only what sources have that are configured is claimed
        if key.query_name not in source.queries:
            return f"no query {key.query_name} is configured"
        if claim.kind is not WorkKind.FETCH:
            return None
        account = source.accounts.get(key.customer_id)
        if account is None:
            return f"no customer {key.customer_id} is configured"
        return None if account.within(key.logical_date, key.logical_date) else "the account has no such day"

    def _whole(self, claims: Claims, held: Held) -> list[Claim]:
        """Return what is held; of a range that lost some days meanwhile, only those up to the gap.

        The others would be another request, for which nothing is reserved: somebody else has them.
        """
        keys = {*held}
        torn = {*_behind_gaps(claims, keys)}
        if torn:
            self.ledger.scheduler.release({key: claims.fences[key] for key in torn})
            held.keep(held.keys() - torn)
        return [claim for claim in claims if claim.key in keys - torn]

    def _open_run(self, fetches: Iterable[Claim]) -> RunId:
        return self.ledger.runs.open_run_under({claim.key: claim.fence for claim in fetches})

    def _finish(self, claims: Claims, tally: Tally) -> None:
        """Let go of what is still held: what was not asked for is ready, and the rest waits for a while."""
        self.ledger.scheduler.release({key: claims.fences[key] for key in tally.left})
        undone = {claim.key: tally.undone.get(claim.key, _NOTHING_CAME) for claim in claims}
        self.ledger.scheduler.put_off(undone, claims.fences)

    def _end_run(self, run_id: RunId | None, fetches: Iterable[Claim], error: str) -> None:
        if run_id is not None:
            tell_left(self.ledger, {run_id: [claim.key for claim in fetches]}, error)


def _behind_gaps(claims: Iterable[Claim], held: Collection[PartitionKey]) -> Iterator[PartitionKey]:
    """Yield what is held of ranges and comes after a day of the same range that is not."""
    for own in ranges_of(claim for claim in claims if claim.kind is WorkKind.FETCH):
        kept = [claim.key for claim in own if claim.key in held]
        yield from kept[len(up_to_gap(kept)) :]


def _left(claims: Iterable[Claim]) -> dict[RunId, list[PartitionKey]]:
    """Return the runs as part of which others were at it before, and lost it without a word."""
    left: dict[RunId, list[PartitionKey]] = defaultdict(list)
    for claim in claims:
        if claim.left_run_id is not None:
            left[claim.left_run_id].append(claim.key)
    return left


def tell_left(ledger: Ledger, left: Mapping[RunId, list[PartitionKey]], error: str = LEFT) -> None:
    """Tell the logs of runs of what they set out to do and is not done as part of them, and end them."""
    for run_id, keys in left.items():
        ledger.runs.leave(run_id, keys, error)
    ledger.runs.end_runs(left)


def _spent(claims: Claims, tally: Tally, *, broke_off: bool) -> dict[int, int]:
    """Return what each reservation came to; of what broke off, what nobody knows of counts as spent."""
    spent = {}
    for each in claims.reservations:
        scope = (each.source, each.lane)
        own = [claim for claim in claims if (claim.key.source, claim.lane) == scope]
        known = sum(tally.requests[claim.key] for claim in own)
        unknown = sum(claim.requests for claim in own if claim.key not in tally.fetched | tally.left)
        spent[each.id] = known + (unknown if broke_off else 0)
    return spent
