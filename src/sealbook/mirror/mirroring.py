"""One query in a mirror: what changed since its latest commit, as the next one.

A commit names the instant that it is equal to, so a mirror goes on from its own latest commit, whoever made
it and whatever became of them since. What is not as the mirror left it is made anew, in one commit as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sealbook.errors import InvalidInput
from sealbook.mirror.filing import Filing
from sealbook.mirror.table import Batch, Commit, HeldFile, MirrorTable, Slot
from sealbook.model import RunId
from sealbook.model.contract import Query
from sealbook.model.publication import Published
from sealbook.model.published_changes import ChangeToken, PublishedChange
from sealbook.model.selection import Selection
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

_MOST_COUNTED = 10_000

if TYPE_CHECKING:
    from sealbook.ledger import LedgerReader
    from sealbook.ledger.pointers.consumers import ConsumerWriter


class Mirrored(NamedTuple):
    """What a mirror did about a query; `commit` is None if there was nothing to do, or it `failed`."""

    mirror: str
    source: str
    query_name: str
    token: str | None
    """The instant that the mirror is equal to; None where that is not known."""
    commit: str | None = None
    partitions: int = 0
    """How many changed; of a mirror that is made anew, how many it has."""
    added: int = 0
    removed: int = 0
    """Files."""
    copied: int = 0
    """Of those that were added."""
    rebuilt: str | None = None
    """Why all of it was made anew; None if only what changed was."""
    failed: str | None = None


class MirrorStanding(NamedTuple):
    """How far a query has come in a mirror, by its latest commit there."""

    mirror: str
    source: str
    query_name: str
    token: str | None
    """None if there is no table, or its latest commit is not of the mirror."""
    commit: str | None
    committed_at: datetime | None
    changes: int | None
    """Changes that it does not have yet; None where there is no telling."""
    more: bool = False
    """Whether there are more than were counted."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the next commit is made from, all of one instant."""

    token: str
    filing: Filing
    partitions: tuple[Published, ...]
    slots: frozenset[Slot] | None
    """Those that changed; None for all."""
    before: dict[Slot, RunId | None] = field(default_factory=dict)
    """Which run the mirror should have of those that changed."""
    rebuilt: str | None = None


@dataclass(frozen=True)
class QueryMirror:
    """A query in a mirror. `keeper` is told how far it has come, and keeps what it refers to."""

    mirror: str
    query: Query
    table: MirrorTable
    ledger: LedgerReader
    keeper: ConsumerWriter
    warehouse: PartFiles
    copies: ArtifactStore

    @property
    def consumer(self) -> str:
        """The name under which the ledger knows how far the mirror has come."""
        return consumer_of(self.mirror)

    @property
    def root(self) -> str:
        """Where the table lies, below the location of the mirror."""
        return root_of(self.query)

    @property
    def selection(self) -> Selection:
        """All partitions of the query."""
        return Selection(source=self.query.source, queries=self.query.name)

    def check(self) -> Mirrored:
        """Do as `run` does, and then compare every file with what is published; other files are put right.

        Copies that are missing or damaged are written again.
        """
        done = self.run()
        latest = self.table.latest()
        plan = self._plan(latest, "its files are not those of what is published")
        batch = self._batch(plan, self.table.files())
        if {each.path for each in batch.removed} == {*map(self.table.path_of, batch.added)}:
            return done
        return self._done(plan, batch)

    def run(self, *, rebuild: bool = False) -> Mirrored:
        """Commit what changed since the latest commit, if anything did; `rebuild` says all of it anew."""
        if self._kept() is None:  # before anything is referred to, so that it is never cleaned up
            self._keep(str(self.ledger.pointers.token()))
        latest = self.table.latest()
        plan = self._plan(latest, "it was asked for" if rebuild else None)
        held = [] if latest is None or plan.slots == frozenset() else self.table.files()
        if plan.slots is not None and not _agrees(plan, held):
            plan = self._plan(latest, "it does not hold what its position says")
        if plan.slots == frozenset():
            self._keep(plan.token)
            return Mirrored(self.mirror, self.query.source, self.query.name, plan.token)
        return self._done(plan, self._batch(plan, held))

    def _done(self, plan: _Plan, batch: Batch) -> Mirrored:
        """Commit, and tell the ledger; a kill in between is made up for by the next run."""
        name = self.table.commit(batch)
        self._keep(plan.token)
        return Mirrored(
            self.mirror,
            self.query.source,
            self.query.name,
            plan.token,
            name,
            partitions=len(plan.partitions if plan.slots is None else plan.slots),
            added=len(batch.added),
            removed=len({each.path for each in batch.removed} - {*map(self.table.path_of, batch.added)}),
            copied=sum(each.copied for each in batch.added),
            rebuilt=plan.rebuilt,
        )

    def standing(self) -> MirrorStanding:
        """Say how far the mirror has come; nothing is written."""
        latest = self.table.latest()
        if latest is None:
            return MirrorStanding(self.mirror, self.query.source, self.query.name, None, None, None, None)
        place = (self.mirror, self.query.source, self.query.name, latest.token, latest.name, latest.at)
        if latest.token is None:
            return MirrorStanding(*place, None)
        found = self.ledger.pointers.changes(self.selection, ChangeToken.parse(latest.token), _MOST_COUNTED)
        return MirrorStanding(*place, len(found.items), found.more)

    def _batch(self, plan: _Plan, held: Iterable[HeldFile]) -> Batch:
        files = {self.table.path_of(each): each for each in plan.filing.files_of(plan.partitions)}
        if plan.slots is None:
            going = {each.path: each for each in held}
        else:
            going = {each.path: each for each in held if each.slot in plan.slots}
            for path in files.keys() & going.keys():  # withdrawn and brought back since: it stays
                del files[path], going[path]
        return Batch(
            plan.token,
            plan.filing.shape,
            plan.filing.schema,
            plan.filing.other_names,
            self.ledger.now(),
            tuple(files.values()),
            tuple(going.values()),
            whole=plan.slots is None,
        )

    def _plan(self, latest: Commit | None, why: str | None) -> _Plan:
        with self.ledger.snapshot() as at:
            query = at.contracts.as_recorded(self.query)
            filing = Filing(query, self.table, self.warehouse, self.copies, self.root)
            why = why or _why_anew(latest, filing.shape)
            if why is None:
                assert latest is not None
                assert latest.token is not None
                try:
                    since = ChangeToken.parse(latest.token)
                    found = at.pointers.changes(self.selection, since)
                except InvalidInput:
                    why = "its position is none of this ledger"
                else:
                    before = _before(found.items)
                    keys = {each.key for each in found.items}
                    partitions = at.pointers.published(Selection(keys=keys)) if keys else ()
                    return _Plan(found.token, filing, tuple(partitions), frozenset(before), before)
            token = str(at.pointers.token())
            return _Plan(token, filing, tuple(at.pointers.published(self.selection)), None, rebuilt=why)

    def _kept(self) -> str | None:
        found = self.ledger.pointers.consumer(self.consumer, self.query.source, self.query.name)
        return None if found is None else found.token

    def _keep(self, token: str) -> None:
        """Tell the ledger how far the mirror has come; what ended since is kept for it (R-WH-7)."""
        if self._kept() != token:
            self.keeper.advance(self.consumer, self.query.source, self.query.name, token, holds=True)


def consumer_of(mirror: str) -> str:
    """Return the name under which the ledger knows a mirror."""
    return f"mirror.{mirror}"


def root_of(query: Query) -> str:
    """Return where the table of a query lies below the location of a mirror."""
    return f"{query.source}/{query.name}"


def _why_anew(latest: Commit | None, shape: str) -> str | None:
    """Say why a mirror cannot go on from its latest commit."""
    if latest is None:
        return "it is new"
    if latest.token is None:
        return "its latest commit is not of the mirror"
    if latest.shape != shape:
        return "columns or places are others"
    return None


def _before(changes: Iterable[PublishedChange]) -> dict[Slot, RunId | None]:
    """Return which run each partition had before the first of its changes."""
    found: dict[Slot, RunId | None] = {}
    for each in changes:
        found.setdefault((each.customer_id, each.logical_date), each.from_run_id)
    return found


def _agrees(plan: _Plan, held: Iterable[HeldFile]) -> bool:
    """Say whether a mirror has those runs of the partitions that changed which it should have."""
    ordered = sorted((each for each in held if each.slot in plan.before), key=lambda each: each.slot)
    has = {slot: {each.run_id for each in files} for slot, files in groupby(ordered, lambda each: each.slot)}
    wanted = {slot: {str(run)} for slot, run in plan.before.items() if run is not None}
    return has == wanted
