"""Which runs are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import uuid4

from sealbook.errors import NotFound
from sealbook.ledger import LedgerReads
from sealbook.ledger.states.reader import KeyFilters
from sealbook.model import PartitionKey, PartitionState, RunId, Status
from sealbook.raw import RawStore
from sealbook.validate.results import NotJudged


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions by key, or by filters of which None filters nothing; and of one run only, if it is named."""

    keys: tuple[PartitionKey, ...] = ()
    source: str | None = None
    customer_id: str | None = None
    query_name: str | None = None
    since: date | None = None
    until: date | None = None
    run_id: RunId | None = None

    @property
    def filters(self) -> KeyFilters:
        """The filters, as the ledger takes them."""
        return {
            "source": self.source,
            "customer_id": self.customer_id,
            "query_name": self.query_name,
            "since": self.since,
            "until": self.until,
        }


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sealed run that is to be judged. `schema_version` is what to expect; the seal has the last word."""

    key: PartitionKey
    run_id: RunId
    payload_bytes: int
    schema_version: str | None = None
    revalidation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be judged, what cannot be, and whether the ledger hears of it."""

    selection: Selection
    candidates: Sequence[Candidate]
    gone: Sequence[NotJudged] = ()
    is_rehearsal: bool = False


def plan_new(raw: RawStore, ledger: LedgerReads, selection: Selection) -> Plan:
    """Plan to judge each sealed run that is newer than the newest judged one of its partition.

    A run that is named is taken whatever its age, unless it has been judged.
    """
    judged = _judged(ledger, selection)
    candidates = [
        Candidate(key, run_id, size)
        for key, run_id, size in _sealed(raw, selection)
        if key not in judged or run_id > judged[key]
    ]
    return Plan(selection, candidates)


def plan_accepted(
    raw: RawStore, ledger: LedgerReads, selection: Selection, *, is_rehearsal: bool = False
) -> Plan:
    """Plan to judge the current run of each accepted partition again: an attempt of its own (R-STATE-5)."""
    revalidation_id = uuid4().hex
    accepted = {
        state.key: state
        for state in _accepted(ledger, selection)
        if selection.run_id in (None, state.current_run_id)
    }
    candidates = []
    for key, run_id, size in _sealed(raw, selection):
        if key in accepted and run_id == accepted[key].current_run_id:
            candidates.append(Candidate(key, run_id, size, accepted.pop(key).schema_version, revalidation_id))
    gone = [
        NotJudged(key, state.current_run_id, "it is the current run, but not sealed any more")
        for key, state in accepted.items()
        if state.current_run_id is not None
    ]
    return Plan(selection, candidates, gone, is_rehearsal)


def _judged(ledger: LedgerReads, selection: Selection) -> Mapping[PartitionKey, RunId]:
    if not selection.keys:
        return dict(ledger.latest_judged(selection.run_id, **selection.filters))
    judged = {}
    for key in selection.keys:
        runs = [attempt.run_id for attempt in ledger.attempts(key)]
        if selection.run_id is not None:
            runs = [run_id for run_id in runs if run_id == selection.run_id]
        if runs:
            judged[key] = max(runs)
    return judged


def _accepted(ledger: LedgerReads, selection: Selection) -> Iterator[PartitionState]:
    if selection.keys:
        states = map(ledger.state, sorted(set(selection.keys)))
        return (state for state in states if state.status is Status.SUCCESS)
    return ledger.states(**selection.filters, status=Status.SUCCESS)


def _sealed(raw: RawStore, selection: Selection) -> Iterator[tuple[PartitionKey, RunId, int]]:
    found = _sealed_of_keys(raw, selection.keys) if selection.keys else _sealed_by_filters(raw, selection)
    return (each for each in found if selection.run_id in (None, each[1]))


def _sealed_by_filters(raw: RawStore, selection: Selection) -> Iterator[tuple[PartitionKey, RunId, int]]:
    return raw.sealed_sizes(
        source=selection.source,
        query_name=selection.query_name,
        customers=None if selection.customer_id is None else [selection.customer_id],
        since=selection.since,
        until=selection.until,
    )


def _sealed_of_keys(raw: RawStore, keys: Sequence[PartitionKey]) -> Iterator[tuple[PartitionKey, RunId, int]]:
    for key in sorted(set(keys)):
        for run_id in raw.runs(key):
            try:
                yield key, run_id, raw.payload_size(key, run_id)
            except NotFound:
                yield key, run_id, 0  # sealed, but its payload is gone: the verdict will say so
