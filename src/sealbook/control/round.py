"""A round: work is opened for what is due, taken up again where something has changed, and counted ahead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from sealbook.config import Settings
from sealbook.control.pricing import days_per_request
from sealbook.control.working import tell_left
from sealbook.errors import IllegalMove
from sealbook.ledger import Ledger
from sealbook.ledger.schedule.budgets import Scope
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey, Status
from sealbook.model.expectations import Expectations
from sealbook.model.ranges import DaysPerRequest, count_ranges
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane, Work, contract_changed, due_again, setup_seen

ACTOR = "control"
"""Who the log of overrides names for what the loop does by policy (R-CTL-3)."""

OTHER_CONTRACT = "another contract is in force than the one that rejected it"
OTHER_SETUP = "what is configured for it has changed since it was parked"
DUE_AGAIN = "it is due again"

_EVERYTHING = Selection()
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Round:
    """What a round found: work that was opened, by lane, and how much was taken up again."""

    opened: Counter[Lane]
    reopened: int


@dataclass(frozen=True)
class RoundOpener:
    """Opens rounds for a book."""

    ledger: Ledger
    settings: Settings
    expectations: Callable[[], Expectations]

    def open(self, selection: Selection = _EVERYTHING) -> Round:
        """Open what is due and chosen, and take up again what was stopped for a reason that is over."""
        left = self.ledger.reviser.left_runs()
        tell_left(self.ledger, left)
        self.ledger.reviser.forget_left(left)
        expectations = self.expectations()
        reopened = self._reopen(expectations)
        opened = self.ledger.rounds.open_due(
            expectations.fetchable,
            selection,
            fresh_for=self.settings.control.fresh_for,
            catch_up=self.ledger.projector().catch_up,
        )
        self.ledger.plans.end_done()
        self.ledger.runs.end_unended()
        return Round(opened, reopened)

    def expected(self) -> dict[Scope, int]:
        """Return what lanes will ask of sources with a budget within a day: what is open, and is coming."""
        if not self.settings.control.requests_per_day:
            return {}
        ranges = days_per_request(self.settings)
        wanted, spent = self.ledger.reader.schedule.wanted(ranges), self.ledger.reader.schedule.spent()
        coming = _coming(self.expectations(), ranges)
        found = {}
        for source in self.settings.control.requests_per_day:
            for lane in Lane:
                scope = (source, lane)
                # Who will fail is not known, but as many as yesterday is a fair guess.
                guess = spent.get(scope, 0) if lane is Lane.RETRY else 0
                found[scope] = max(wanted.get(scope, 0) + coming.get(scope, 0), guess)
        return found

    def _reopen(self, expectations: Expectations) -> int:
        def after_due_point(row: OpenWork, _at: datetime) -> Work:
            return _after_due_point(row, expectations)

        ways = (
            (self._after_contract, OTHER_CONTRACT),
            (self._after_setup, OTHER_SETUP),
            (after_due_point, DUE_AGAIN),
        )
        found: dict[str, list[PartitionKey]] = {why: [] for _, why in ways}
        for row in self.ledger.reader.schedule.reopenable():
            for revise, why in ways:
                if revise(row, expectations.now) != row.work:
                    found[why].append(row.key)
                    break
        requeued = self._requeue(found[OTHER_CONTRACT])
        found[OTHER_CONTRACT] = [key for key in found[OTHER_CONTRACT] if key not in requeued]
        going = (
            self.ledger.reviser.revise(found[why], revise, actor=ACTOR, reason=why) for revise, why in ways
        )
        return len(requeued) + sum(map(len, going))

    def _requeue(self, rejected: list[PartitionKey]) -> set[PartitionKey]:
        """Turn those that failed to pending, to be judged again; it is logged as an override (R-CTL-3)."""
        failed = Selection(keys=rejected, statuses=[Status.FAILED])
        keys = [state.key for state in self.ledger.states(failed)] if rejected else []
        if not keys:
            return set()
        try:
            results = self.ledger.requeue(
                keys, actor=ACTOR, reason=OTHER_CONTRACT, filter={"contract": "changed"}
            )
        except IllegalMove:  # another loop was quicker
            return set(keys)
        return {result.key for result in results}

    def _after_contract(self, row: OpenWork, at: datetime) -> Work:
        """Return the work by the contracts as configured; a run is judged by that of its own version."""
        source = self.settings.sources.get(row.key.source)
        query = None if source is None else source.queries.get(row.key.query_name)
        if query is None or row.work.contract_hash in {each.hash for each in query.contracts.values()}:
            return row.work
        return contract_changed(row.work, query.contracts[query.schema_version].hash, at)

    def _after_setup(self, row: OpenWork, at: datetime) -> Work:
        return setup_seen(row.work, setup_of(self.settings, row.key), at)


def setup_of(settings: Settings, key: PartitionKey) -> str:
    """Return a digest of what is configured for a partition's source, customer and query."""
    source = settings.sources.get(key.source)
    if source is None:
        return sha256(b"").hexdigest()
    named, account = source.queries.get(key.query_name), source.accounts.get(key.customer_id)
    query = None if named is None else named.on(key.logical_date)
    contracts = None if query is None else sorted(each.hash for each in query.contracts.values())
    configured = [
        source.options,
        None if query is None else [query.hash, query.schema_version, contracts],
        None if account is None else [str(account.zone), account.first_day, account.last_day],
    ]
    return sha256(msgspec.json.encode(configured, enc_hook=str, order="deterministic")).hexdigest()


def _after_due_point(row: OpenWork, expectations: Expectations) -> Work:
    """Return the work, if a due point of its day has passed since it was given up."""
    deadline = expectations.deadline(row.key)
    passed = deadline is not None and row.stopped_at is not None and deadline.point > row.stopped_at
    return due_again(row.work, expectations.now) if passed else row.work


def _coming(expectations: Expectations, ranges: DaysPerRequest) -> Mapping[Scope, int]:
    """Return how many requests are needed for what becomes due within a day: new days, and days due again."""
    universe, now = expectations.universe, expectations.now
    again: dict[AssetName, int] = {}
    due = {each[:3]: each for each in universe.due(_EVERYTHING, now)}
    coming: Counter[Scope] = Counter()
    for each in universe.due(_EVERYTHING, now + _DAY):
        before = due.get(each[:3])
        name = AssetName(each.source, each.query_name)
        first = each.first if before is None else before.last + _DAY
        new = range(first.toordinal(), each.last.toordinal() + 1)
        coming[each.source, Lane.FRESH] += count_ranges(new, ranges.of(*name))
        if name not in again:
            again[name] = _due_again(expectations, name, each.last.toordinal(), ranges)
        coming[each.source, Lane.REFRESH] += again[name]
    return coming


def _due_again(expectations: Expectations, name: AssetName, last: int, ranges: DaysPerRequest) -> int:
    """Return how many requests a customer's days need that are due again within a day.

    Those of due points at the same time of the day are ready together.
    """
    asset = expectations.universe.assets.get(name)
    points = () if asset is None or asset.freshness is None else asset.freshness.due[1:]
    times: dict[timedelta, list[int]] = defaultdict(list)
    for point in points:
        times[point % _DAY].append(last - point // _DAY)
    return sum(count_ranges(days, ranges.of(*name)) for days in times.values())
