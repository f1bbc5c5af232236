"""Which sealed runs are judged (R-VER-5, R-VER-6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from uuid import uuid4

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, PartitionState, RunId, Status
from sealbook.model.claims import Lease
from sealbook.model.keys import AHEAD_REMEDY, SEALED_AHEAD_REMEDY, is_ahead, newest_run_prefix, why_ahead
from sealbook.model.selection import Selection
from sealbook.raw import RawMetadata, RawReader, SealedRun
from sealbook.validate.results import NotJudged

_RUNS_AT_ONCE = 5_000
_NONE: frozenset[RunId] = frozenset()


class Which(StrEnum):
    """Which runs of the partitions that are chosen are to be judged."""

    NEW = "new"
    """Each sealed run that has not been judged, and could take authority."""
    ACCEPTED = "accepted"
    """The current run of each accepted partition, again."""
    REJECTED = "rejected"
    """The newest sealed run of each rejected partition, again."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sealed run that is to be judged. `schema_version` is what to expect; the seal has the last word.

    `current_run_id` is the run that has authority while this is planned.
    """

    key: PartitionKey
    run_id: RunId
    payload_bytes: int
    schema_version: str | None = None
    revalidation_id: str | None = None
    current_run_id: RunId | None = None


@dataclass(frozen=True, slots=True)
class ValidatePlan:
    """What is to be judged, what cannot be, and whether the ledger hears of it.

    `superseded` counts sealed runs that are passed over: a newer run of their partition is accepted. `held`
    are partitions that others are working on, and that are left to them. `irreplaceable` confirms verdicts
    that take the only copy of a day from consumers.
    """

    which: Which
    candidates: Sequence[Candidate]
    gone: Sequence[NotJudged] = ()
    superseded: int = 0
    dry_run: bool = False
    held: Sequence[Lease] = ()
    irreplaceable: bool = False

    def besides(self, leases: Sequence[Lease]) -> ValidatePlan:
        """Return the plan without what others are working on (R-CTL-4); a dry run is in nobody's way."""
        if self.dry_run or not leases:
            return self
        planned = {candidate.key for candidate in self.candidates}
        held = {lease.key: lease for lease in leases if lease.key in planned}
        left = [candidate for candidate in self.candidates if candidate.key not in held]
        return replace(self, candidates=left, held=tuple(held.values()))

    def __len__(self) -> int:
        return len(self.candidates) + len(self.gone)

    def joined(self, other: ValidatePlan) -> ValidatePlan:
        """Return one plan for both."""
        candidates = sorted((*self.candidates, *other.candidates), key=attrgetter("key", "run_id"))
        return replace(self, candidates=candidates, gone=(*self.gone, *other.gone))

    @property
    def runs(self) -> set[RunId]:
        """The runs that are judged, and those that may be superseded by it."""
        return {candidate.run_id for candidate in self.candidates} | {
            candidate.current_run_id for candidate in self.candidates if candidate.current_run_id is not None
        }


def plan_new(
    raw: RawReader, ledger: LedgerReader, selection: Selection, *, dry_run: bool = False
) -> ValidatePlan:
    """Plan to judge every sealed run that has not been judged, and is not superseded (R-VER-5).

    A run that is named is taken even if it is superseded. Of a partition that was requeued, the newest sealed
    run is judged again before anything is fetched (R-VER-6).
    """
    candidates: list[Candidate] = []
    ahead: list[NotJudged] = []
    superseded = 0
    filters = replace(selection, runs=None, statuses=None)
    unjudged = raw.sealed(selection, besides=ledger.judged_run_names(filters))
    for group in _partitions(unjudged, ledger, selection):
        ahead += group.set_aside()
        current = group.authority
        for run in group.fresh:
            if selection.runs is None and current is not None and run.run_id < current:
                superseded += 1
            else:
                candidates.append(group.candidate(run))
    candidates += _requeued(raw, ledger, selection)
    candidates.sort(key=attrgetter("key", "run_id"))
    return ValidatePlan(Which.NEW, candidates, ahead, superseded=superseded, dry_run=dry_run)


def _requeued(raw: RawReader, ledger: LedgerReader, selection: Selection) -> Iterator[Candidate]:
    """Yield the run to judge again of each requeued partition that has nothing new to judge (R-VER-6)."""
    revalidation_id = uuid4().hex
    for group in _of_states(raw, ledger, selection, Status.PENDING):
        if not group.fresh and (again := group.next_to_judge) is not None:
            yield group.candidate(again, revalidation_id)


def plan_accepted(
    raw: RawReader, ledger: LedgerReader, selection: Selection, *, dry_run: bool = False
) -> ValidatePlan:
    """Plan to judge the current run of each accepted partition again: an attempt of its own (R-STATE-5)."""
    revalidation_id = uuid4().hex
    accepted = {
        state.key: state
        for state in ledger.states(_with_status(selection, Status.SUCCESS))
        if state.current_run_id is not None
    }
    horizon = ledger.run_horizon()
    candidates: list[Candidate] = []
    gone: list[NotJudged] = []
    for run in raw.sealed(selection):
        state = accepted.get(run.key)
        if state is not None and run.run_id == state.current_run_id:
            del accepted[run.key]
            if is_ahead(run.run_id, horizon):
                gone.append(_from_the_future(run, AHEAD_REMEDY))
            else:
                version = state.schema_version
                candidates.append(Candidate(*run, version, revalidation_id, state.current_run_id))
    gone += [
        NotJudged(key, state.current_run_id, "it is the current run, but not sealed any more")
        for key, state in accepted.items()
        if state.current_run_id is not None
    ]
    return ValidatePlan(Which.ACCEPTED, candidates, gone, dry_run=dry_run)


def plan_rejected(
    raw: RawReader, ledger: LedgerReader, selection: Selection, *, dry_run: bool = False
) -> ValidatePlan:
    """Plan to judge each rejected partition's newest sealed run again, by today's contract (R-VER-6)."""
    revalidation_id = uuid4().hex
    candidates: list[Candidate] = []
    ahead: list[NotJudged] = []
    for group in _of_states(raw, ledger, selection, Status.FAILED):
        ahead += group.set_aside()
        if (run := group.next_to_judge) is not None:
            again = revalidation_id if run.run_id in group.judged else None
            candidates.append(group.candidate(run, again))
    return ValidatePlan(Which.REJECTED, candidates, ahead, dry_run=dry_run)


def plan_sealed(ledger: LedgerReader, seals: Iterable[RawMetadata]) -> ValidatePlan:
    """Plan to judge runs that have just been sealed, by what their seals say: nothing is listed."""
    sealed = {(seal.key, seal.run_id): seal for seal in seals}
    if not sealed:
        return ValidatePlan(Which.NEW, ())
    keys = {key for key, _ in sealed}
    chosen = Selection(keys=keys, runs={run_id for _, run_id in sealed})
    judged = set(ledger.judged_runs(chosen))
    current = {state.key: state.current_run_id for state in ledger.states(Selection(keys=keys))}
    return ValidatePlan(
        Which.NEW,
        [
            Candidate(key, run_id, seal.payload_bytes, seal.schema_version, current_run_id=current.get(key))
            for (key, run_id), seal in sorted(sealed.items())
            if (key, run_id) not in judged
        ],
    )


def plan_named(
    raw: RawReader, ledger: LedgerReader, runs: Iterable[tuple[PartitionKey, RunId]]
) -> ValidatePlan:
    """Plan to judge these runs, whatever else is sealed; one that was judged before is judged once more."""
    named = sorted({*runs})
    if not named:
        return ValidatePlan(Which.NEW, ())
    chosen = Selection(keys={key for key, _ in named}, runs={run_id for _, run_id in named})
    sealed = {(run.key, run.run_id): run for run in raw.sealed(chosen)}
    judged = {*ledger.judged_runs(chosen)}
    current = {state.key: state.current_run_id for state in ledger.states(Selection(keys=chosen.keys))}
    horizon, revalidation_id = ledger.run_horizon(), uuid4().hex
    candidates: list[Candidate] = []
    gone: list[NotJudged] = []
    for each in named:
        key, run_id = each
        if each not in sealed:
            gone.append(NotJudged(key, run_id, "it is not sealed any more", is_gone=True))
        elif is_ahead(run_id, horizon):
            gone.append(_from_the_future(sealed[each], SEALED_AHEAD_REMEDY))
        else:
            again = revalidation_id if each in judged else None
            candidates.append(Candidate(*sealed[each], None, again, current.get(key)))
    return ValidatePlan(Which.NEW, candidates, gone)


@dataclass(frozen=True, slots=True)
class _Partition:
    """The sealed runs of a partition, oldest first, with its state and which of the runs were judged.

    `ahead` are those from the future, which have no part in anything (R-RUN-2). `hold` is what a rollback
    left: no other run up to it can take authority (R-STATE-9).
    """

    state: PartitionState
    runs: Sequence[SealedRun]
    ahead: Sequence[SealedRun]
    judged: Collection[RunId]
    hold: RunId | None
    newest: str
    """How the newest run begins that is not from the future."""

    @property
    def fresh(self) -> list[SealedRun]:
        """The runs that were not judged."""
        return [run for run in self.runs if run.run_id not in self.judged]

    @property
    def authority(self) -> RunId | None:
        """The run that has authority, unless it is one from the future, which supersedes nothing."""
        current = self.state.current_run_id if self.state.status is Status.SUCCESS else None
        return None if current is not None and current[: len(self.newest)] > self.newest else current

    @property
    def next_to_judge(self) -> SealedRun | None:
        """The newest run that can take authority if it is judged again; or the newest, if none can."""
        current = self.state.current_run_id
        able = [
            run for run in self.runs if self.hold is None or run.run_id > self.hold or run.run_id == current
        ]
        return next(reversed(able or list(self.runs)), None)

    def set_aside(self) -> list[NotJudged]:
        """Return the runs from the future that nobody has judged, with what to do about them."""
        unjudged = (run for run in self.ahead if run.run_id not in self.judged)
        return [_from_the_future(run, SEALED_AHEAD_REMEDY) for run in unjudged]

    def candidate(self, run: SealedRun, revalidation_id: str | None = None) -> Candidate:
        current = self.state.current_run_id
        return Candidate(*run, revalidation_id=revalidation_id, current_run_id=current)


def _of_states(
    raw: RawReader, ledger: LedgerReader, selection: Selection, status: Status
) -> Iterator[_Partition]:
    """Yield what is sealed of judged partitions of a status, which the ledger names: only they are listed."""
    if selection.statuses is not None and status not in selection.statuses:
        return
    states = ledger.states(replace(_with_status(selection, status), runs=None))
    keys = [state.key for state in states if state.attempt_count > 0]
    if keys:
        found = _partitions(raw.sealed(Selection(keys=keys, runs=selection.runs)), ledger, selection)
        yield from (group for group in found if group.state.status is status)


def _partitions(
    sealed: Iterable[SealedRun], ledger: LedgerReader, selection: Selection
) -> Iterator[_Partition]:
    """Yield sealed runs partition by partition; the ledger is asked for some thousand runs at a time."""
    newest = newest_run_prefix(ledger.run_horizon())
    for runs in _some_customers(sealed):
        by_key = {key: list(own) for key, own in groupby(runs, key=attrgetter("key"))}
        chosen = _narrowed(selection, by_key)
        states = {state.key: state for state in ledger.states(chosen)}
        judged: dict[PartitionKey, set[RunId]] = defaultdict(set)
        for key, run_id in ledger.judged_runs(chosen):
            judged[key].add(run_id)
        holds = dict(ledger.holds(chosen))
        for key, own in by_key.items():
            state = states.get(key) or PartitionState.pending(key)
            if selection.statuses is None or state.status in selection.statuses:
                present = [run for run in own if run.run_id[: len(newest)] <= newest]
                ahead = own[len(present) :]  # they come in the order of runs
                yield _Partition(state, present, ahead, judged.get(key, _NONE), holds.get(key), newest)


def _from_the_future(run: SealedRun, remedy: str) -> NotJudged:
    return NotJudged(run.key, run.run_id, f"{why_ahead(run.run_id)}. {remedy}")


def _some_customers(runs: Iterable[SealedRun]) -> Iterator[list[SealedRun]]:
    """Cut runs, which come in key order, into pieces of some thousand; each has all of its customers."""
    piece: list[SealedRun] = []
    for _, own in groupby(runs, key=lambda run: (run.key.source, run.key.customer_id)):
        piece += own
        if len(piece) >= _RUNS_AT_ONCE:
            yield piece
            piece = []
    if piece:
        yield piece


def _narrowed(selection: Selection, keys: Collection[PartitionKey]) -> Selection:
    """Choose what the ledger has of the customers of some partitions."""
    if selection.keys:
        return Selection(keys=keys)
    return Selection(
        source={key.source for key in keys},
        customers={key.customer_id for key in keys},
        queries=selection.queries,
        since=selection.since,
        until=selection.until,
    )


def _with_status(selection: Selection, status: Status) -> Selection:
    return replace(selection, statuses=(status,))
