"""R-WH-1 to R-WH-8, R-CON-1 to R-CON-3: any history of verdicts, loads, cuts and clean-ups, and a model.

Three writers take part, each with a clock of its own that may jump by days. Clean-ups may die at each step,
and notes of changes be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, delete

from sealbook.errors import IllegalMove, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.queries import at_key
from sealbook.ledger.pointers import Pointers
from sealbook.ledger.pointers.tables import authority_change
from sealbook.model import Outcome, PartitionKey, RunId, Status
from sealbook.model.artifacts import Action, Artifact, Condemned, LoadRecord, Staged
from sealbook.model.expectations import Expectations
from sealbook.model.partition_events import read_fact
from sealbook.model.publication import CoverageKind
from sealbook.model.selection import Selection
from sealbook.model.status import Availability, PartitionStatus, fold_status
from sealbook.model.universe import Universe
from sealbook.status.verify import verify_ledger
from tests.support.ledger import accept, reject, run_id
from tests.support.pointers import planned, seen, stage

RUNS = st.integers(1, 4)
OF_VERSION_2 = 3
RECORDS = 10
DAY = date(2026, 1, 1)
KEYS = [PartitionKey("demo", customer, "clicks", DAY) for customer in "ab"]
NOW = datetime(2026, 2, 1, tzinfo=UTC)
WHO: Any = {"actor": "ann", "reason": "to try it"}
RETAIN = timedelta(days=7)
WRITERS = range(3)
JUMPS = st.sampled_from([timedelta(days=days) for days in (-8, -1, 0, 1, 8)])

File = tuple[Artifact, int]
"""An artifact, and which copy of it."""


@dataclass
class Shelf:
    """The reference: what is published of a partition, by the rules of sections 8 and 9."""

    pointed: Artifact | None = None
    ever: bool = False


@dataclass
class Warehouse:
    """The reference for all partitions, the files that exist, and what each cut must give."""

    shelves: dict[PartitionKey, Shelf] = field(default_factory=lambda: {key: Shelf() for key in KEYS})
    files: set[File] = field(default_factory=set)
    records: dict[Artifact, LoadRecord] = field(default_factory=dict)
    cuts: dict[str, dict[PartitionKey, RunId]] = field(default_factory=dict)
    closed: dict[Artifact, datetime] = field(default_factory=dict)
    published: set[Artifact] = field(default_factory=set)

    def point(self, key: PartitionKey, to: Artifact | None, at: datetime) -> None:
        shelf = self.shelves[key]
        if shelf.pointed is not None:
            self.closed[shelf.pointed] = at
        shelf.pointed, shelf.ever = to, True
        if to is not None:
            self.published.add(to)


class PointerMachine(RuleBasedStateMachine):
    """Does the same to a ledger's pointers and to the reference, and compares.

    States are taken from the ledger: that they are right is proved elsewhere.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clocks = dict.fromkeys(WRITERS, NOW)
        self.ledgers = [open_ledger(url, clock=partial(self.clocks.__getitem__, each)) for each in WRITERS]
        self.writer = 0
        self.reference = Warehouse()
        self.ready: list[Staged] = []  # staged, and not swapped yet, perhaps for long
        self.doomed: list[Condemned] = []  # condemned, and not forgotten yet
        self.taken: set[File] = set()  # ever condemned
        self.judgements = 0
        self.latest = NOW
        self.lost: set[PartitionKey] = set()  # that differ, and perhaps no note says so

    @property
    def ledger(self) -> Ledger:
        return self.ledgers[self.writer]

    @property
    def pointers(self) -> Pointers:
        return self.ledger.pointers

    @property
    def now(self) -> datetime:
        """R-STATE-11: the time of the writer at work, but never before that of the last change."""
        return max(self.clocks[self.writer], self.latest)

    @rule(writer=st.sampled_from(WRITERS), jump=JUMPS)
    def another_writer(self, writer: int, jump: timedelta) -> None:
        """Somebody else goes on, whose clock may have been set."""
        self.writer = writer
        self.clocks[writer] += jump

    def authorities(self) -> dict[PartitionKey, Artifact]:
        return {
            state.key: Artifact(state.key, RunId(str(state.current_run_id)), str(state.schema_version))
            for state in self.ledger.states(status=Status.SUCCESS)
        }

    def readable(self) -> dict[PartitionKey, Artifact]:
        """R-CON-1, R-CON-2, R-WH-5: what is pointed at, unless it was last judged unfit."""
        authorities = self.authorities()
        return {
            key: shelf.pointed
            for key, shelf in self.reference.shelves.items()
            if shelf.pointed is not None
            and key in authorities
            and (shelf.pointed == authorities[key] or self.is_fit(shelf.pointed))
        }

    def is_fit(self, artifact: Artifact) -> bool:
        attempts = self.ledger.attempts(artifact.key)
        return [each for each in attempts if each.run_id == artifact.run_id][-1].outcome is Outcome.ACCEPTED

    @initialize()
    def begin_with_something_published(self) -> None:
        """Two runs one after the other: there is something to roll back to, and something to clean up."""
        for run in (1, 2):
            self.ledger.judge([accept(key, run, again="first") for key in KEYS])
            self.load()

    @rule(
        key=st.sampled_from(KEYS),
        run=RUNS,
        good=st.booleans(),
        records=st.sampled_from([RECORDS, RECORDS, RECORDS + 1]),
    )
    def judge(self, key: PartitionKey, run: int, good: bool, records: int = RECORDS) -> None:
        """R-STATE-10: a re-validation may count otherwise; but an artifact has the rows that it has."""
        self.judgements += 1
        again, version = str(self.judgements), "2" if run == OF_VERSION_2 else "1"
        if good:
            accepted = accept(key, run, again=again, version=version, records=records)
            self.ledger.judge([replace(accepted, contract_hash=f"contract {again}")])
        else:
            self.ledger.judge([reject(key, run, again=again)])

    def miscounted(self) -> set[PartitionKey]:
        """Return the partitions that were accepted with another number of records than artifacts have."""
        return {each.key for each in self.ledger.states(status="success") if each.record_count != RECORDS}

    @rule(key=st.sampled_from(KEYS), run=RUNS)
    def demote_and_accept_another(self, key: PartitionKey, run: int) -> None:
        """What a validator may do between two loads."""
        authority = self.authorities().get(key)
        if authority is not None:
            self.judge(key, int(authority.run_id), False)
        self.judge(key, run, True)

    @rule(key=st.sampled_from(KEYS), run=RUNS.map(run_id))
    def roll_back(self, key: PartitionKey, run: RunId) -> None:
        """R-WH-9: the pointer follows in the same transaction, to the artifact if it is there."""
        before = self.ledger.state(key).updated_at
        try:
            done = self.ledger.rollbacks.rollback(key, run, **WHO)
        except (IllegalMove, NotFound):
            return
        chosen, shelf = self.authorities()[key], self.reference.shelves[key]
        assert chosen.run_id == run
        if not done.is_readable:
            taken = chosen in {each for each, _ in self.taken}
            assert taken or chosen not in self.reference.published or key in self.miscounted()
        if shelf.pointed not in (chosen, chosen if done.is_readable else None):
            self.latest = max(self.now, before or NOW)
            self.reference.point(key, chosen if done.is_readable else None, self.latest)

    @rule()
    def requeue(self) -> None:
        self.ledger.requeue([state.key for state in self.ledger.states(status="failed")], **WHO)

    @rule(keys=st.sets(st.sampled_from(KEYS), min_size=1))
    def lose_notes(self, keys: set[PartitionKey]) -> None:
        """R-WH-8: what is lost may be the only word of a change."""

        def work(connection: Connection) -> None:
            for key in keys:
                connection.execute(delete(authority_change).where(*at_key(authority_change, key)))

        self.ledger._database.write(work)
        self.lost |= keys

    @rule(key=st.sampled_from(KEYS))
    def demote_without_a_note(self, key: PartitionKey) -> None:
        """What a cut, a full plan and a full load must find all the same."""
        authority = self.authorities().get(key)
        if authority is not None:
            self.judge(key, int(authority.run_id), False)
            self.lose_notes({key})

    @rule()
    def load_in_full(self) -> None:
        """R-WH-8: whatever was lost, afterwards all that can be published is, and nothing else."""
        self.hide(full=True)
        self.stage(full=True)
        self.swap_batch(self.ready[-len(KEYS) :])
        assert {key for _, key in planned(self.ledger, full=True)} == self.miscounted()

    @rule(full=st.booleans())
    def stage(self, full: bool = False) -> None:
        for item in self.pointers.plan(full=full):
            if item.action is not Action.HIDE:
                ready = stage(item._replace(record_count=RECORDS))
                self.reference.files.add((ready.artifact, ready.copy))
                self.ready.append(ready)

    @rule()
    def load(self) -> None:
        """Stage and swap at once, as a loader that nothing disturbs."""
        self.stage()
        self.swap_batch(self.ready[-len(KEYS) :])

    @precondition(lambda self: self.ready)
    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        """Swap some of what is ready, in any order, some of it staged long ago."""
        self.swap_batch(data.draw(st.lists(st.sampled_from(self.ready), min_size=1, max_size=4)))

    def swap_batch(self, chosen: list[Staged]) -> None:
        batch = list({each.key: each for each in chosen}.values())
        version = self.pointers.version()
        result = self.pointers.swap(batch)
        changed, authorities, miscounted = False, self.authorities(), self.miscounted()
        for each in batch:
            shelf = self.reference.shelves[each.key]
            if each.artifact != authorities.get(each.key):
                assert each.key in result.moved
            elif each.key in result.removed:
                assert (each.artifact, each.copy) in self.taken  # or about to be
            elif each.key in miscounted:
                assert each.key in result.miscounted
            elif shelf.pointed == each.artifact:
                assert each.key in result.unchanged
            else:
                assert each.key in (result.loaded if shelf.pointed is None else result.replaced)
                self.reference.point(each.key, each.artifact, self.now)
                changed = True
        self.latest = self.now if changed else self.latest
        assert result.version == self.pointers.version() == version + changed

    @rule(full=st.booleans())
    def hide(self, full: bool) -> None:
        pointed = {key for key, shelf in self.reference.shelves.items() if shelf.pointed is not None}
        unsafe = pointed - self.authorities().keys()
        hidden = self.pointers.hide(full=full)
        assert hidden == sorted(unsafe - (set() if full else self.lost - set(hidden)))
        for key in hidden:
            self.reference.point(key, None, self.now)
        self.latest = self.now if hidden else self.latest

    @rule()
    def create_cut(self) -> None:
        readable = self.readable()
        made = self.pointers.create_cut()
        self.reference.cuts[made.token] = {key: found.run_id for key, found in readable.items()}
        for key, shelf in self.reference.shelves.items():
            if shelf.pointed is not None and key not in readable:
                self.reference.point(key, None, self.now)
        self.latest = self.now

    @precondition(lambda self: len(self.reference.cuts) > 2)
    @rule()
    def drop_cut(self) -> None:
        token = min(self.reference.cuts)
        self.pointers.drop_cut(token)
        del self.reference.cuts[token]

    @rule(retain=st.sampled_from([timedelta(0), RETAIN]))
    def condemn(self, retain: timedelta) -> None:
        """Begin a clean-up, which may die right after."""
        listed = {artifact for artifact, _ in self.reference.files}
        asked = sorted(listed | set(self.pointers.removable(retain)), key=str)
        for each in self.pointers.condemn(asked, retain):
            # What a clean-up that died had condemned is finished, come what may: by now it is another copy.
            if each not in self.doomed:
                assert each.artifact != self.authorities().get(each.artifact.key)
                assert self.reference.closed.get(each.artifact, NOW - RETAIN) <= self.now - retain
                self.doomed.append(each)
                self.taken.update((each.artifact, copy) for copy in range(each.copy + 1))
        self.latest = self.now

    @precondition(lambda self: self.doomed)
    @rule(data=st.data(), forgets=st.booleans())
    def remove(self, data: st.DataObject, forgets: bool) -> None:
        """Delete files of what was condemned, perhaps long ago; die half-way, or before saying so."""
        chosen = data.draw(st.lists(st.sampled_from(self.doomed), min_size=1, unique=True))
        self.delete(chosen)
        if forgets:
            self.forget(chosen)

    def delete(self, condemned: list[Condemned]) -> None:
        gone = {(each.artifact, copy) for each in condemned for copy in range(each.copy + 1)}
        self.reference.files -= gone

    def forget(self, condemned: list[Condemned]) -> None:
        self.pointers.forget(condemned)
        self.doomed = [each for each in self.doomed if each not in condemned]
        self.latest = self.now

    @rule()
    def clean_up(self) -> None:
        """A whole clean-up, after which nothing but what is needed is left."""
        self.clocks[self.writer] = self.now + RETAIN
        self.condemn(RETAIN)
        self.delete(self.doomed)
        self.forget(list(self.doomed))
        assert list(self.pointers.removable(RETAIN)) == []

    @invariant()
    def readers_see_what_the_rules_say(self) -> None:
        """R-CON-1 to R-CON-3, R-WH-5: reads, strict reads and coverage, all of the same instant."""
        readable, authorities = self.readable(), self.authorities()
        published = list(self.pointers.published(Selection(queries="clicks")))
        assert {
            each.key: Artifact(each.key, each.run_id, each.schema_version) for each in published
        } == readable
        current = {key: found for key, found in readable.items() if found == authorities[key]}
        assert {each.key for each in published if not each.behind} == current.keys()
        assert seen(self.ledger, "clicks", strict=True).keys() == current.keys()

        states = {state.key: state for state in self.ledger.states()}
        universe: Any = {"source": "demo", "customers": list("ab"), "since": DAY, "until": DAY}
        for each in self.pointers.coverage("clicks", **universe):
            if each.key in readable:
                assert each.kind == ("published" if each.key in current else "behind")
            elif each.key not in states:
                assert each.kind == "missing"
            elif states[each.key].status is Status.FAILED:
                assert (each.kind, each.why) == ("failed", states[each.key].error_message)
            else:
                assert each.kind == ("hidden" if self.reference.shelves[each.key].ever else "pending")

    @invariant()
    def the_plan_is_what_differs(self) -> None:
        """R-WH-1, R-WH-8: the full plan in any case, the other where notes of changes are not lost."""
        expected, authorities = {}, self.authorities()
        for key, shelf in self.reference.shelves.items():
            if key not in authorities and shelf.pointed is not None:
                expected[key] = Action.HIDE
            elif key in authorities and shelf.pointed is None:
                expected[key] = Action.LOAD
            elif authorities.get(key) != shelf.pointed or key in self.miscounted():
                expected[key] = Action.REPLACE
        assert planned(self.ledger, full=True) == [(action, key) for key, action in expected.items()]
        differences = list(self.pointers.differences())
        assert {each.key for each in differences} == expected.keys()
        self.lost &= expected.keys()
        noted = planned(self.ledger)
        assert noted == [
            (expected[each], each) for each in sorted({each.key for each in differences if each.noted})
        ]
        assert expected.keys() - {key for _, key in noted} <= self.lost

    @rule()
    def ask_for_status(self) -> None:
        """R-PST-9: status says of each partition what coverage says, and what its facts add up to."""
        self.ledger.projector().catch_up()
        covered = self.pointers.coverage("clicks", source="demo", customers=[*"ab"], since=DAY, until=DAY)
        for each in covered:
            line = self.ledger.reader.statuses.line(each.key, Expectations(Universe({}, {}), NOW))
            ever = Availability.HIDDEN if self.reference.shelves[each.key].ever else Availability.NONE
            readable = each.kind in (CoverageKind.PUBLISHED, CoverageKind.BEHIND)
            assert line.availability == (each.kind.value if readable else ever)
            folded = PartitionStatus(each.key)
            for fed in self.ledger.reader.partition_log.feed_of(each.key):
                fact, at = read_fact(fed.event), fed.event.persisted_at
                assert fact is not None
                assert at is not None
                folded = fold_status(folded, fact, at, fed.position)
            attempt, materialization = folded.attempt, folded.materialization
            assert line.last_attempt_run_id == (None if attempt is None else attempt.run_id)
            assert line.last_attempt_outcome == (None if attempt is None else attempt.outcome)
            assert line.last_materialization_run_id == (
                None if materialization is None else materialization.run_id
            )
            assert line.last_materialization_at == (None if materialization is None else materialization.at)
            assert line.last_materialization_code_version == folded.code_version

    @invariant()
    def cuts_never_change_and_what_can_be_read_has_its_files(self) -> None:
        """R-WH-7."""
        cuts = {
            token: list(self.pointers.published(Selection(queries="clicks"), cut=token))
            for token in self.reference.cuts
        }
        found = {token: {each.key: each.run_id for each in read} for token, read in cuts.items()}
        assert found == self.reference.cuts
        for read in (*cuts.values(), self.pointers.published(Selection(queries="clicks"))):
            for each in read:
                artifact = Artifact(each.key, each.run_id, each.schema_version)
                assert (artifact, each.copy) in self.reference.files

    @invariant()
    def load_records_are_for_ever(self) -> None:
        """R-WH-2: `loaded_at` included, whatever was cleaned up and loaded again."""
        found = {each.artifact: each for each in self.pointers.load_records()}
        assert self.reference.records.items() <= found.items()
        self.reference.records = found

    @invariant()
    def every_success_can_be_published(self) -> None:
        """R-WH-7: no clean-up, alive or dead, keeps a load from publishing what it stages."""
        for item in self.pointers.plan(full=True):
            if item.action is not Action.HIDE:
                ready = stage(item)
                assert (ready.artifact, ready.copy) not in self.taken

    def teardown(self) -> None:
        """A pointer holds from version to version, one at a time, without overlap."""
        self.ask_for_status()
        for key, shelf in self.reference.shelves.items():
            spans = self.pointers.history(key)
            for earlier, later in pairwise(spans):
                assert earlier.valid_to is not None
                assert earlier.valid_from < earlier.valid_to <= later.valid_from
                assert earlier.closed_at is not None
                assert earlier.published_at <= earlier.closed_at <= later.published_at  # R-STATE-11
            last = [
                Artifact(key, each.run_id, each.schema_version) for each in spans if each.valid_to is None
            ]
            assert last == ([] if shelf.pointed is None else [shelf.pointed])
        assert list(verify_ledger(self.ledger.reader)) == []  # R-EVT-11
        for ledger in self.ledgers:
            ledger.close()


def test_any_history(new_ledger_url: Callable[[], str], request: pytest.FixtureRequest) -> None:
    class Machine(PointerMachine):
        def __init__(self) -> None:
            super().__init__(new_ledger_url())

    on_sqlite = "sqlite" in request.node.name
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=50 if on_sqlite else 8,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
