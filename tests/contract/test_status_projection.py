"""R-PST-2, R-PST-9: the log taken into partition status, exactly once, and built again the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import astuple, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert, select, update

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.events import FeedEvent, Projector
from sealbook.ledger.events.projections import begin as begin_projection
from sealbook.ledger.events.tables import run_head
from sealbook.ledger.status import PartitionStatuses
from sealbook.ledger.status.tables import day_of, partition_status, run_scope, status_series, time_of
from sealbook.model import PartitionKey, RunEvent, RunId
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFact, PartitionFailed, Stage, read_fact
from sealbook.model.scope import Scope
from sealbook.model.status import (
    AttemptOutcome,
    Availability,
    LastAttempt,
    Materialization,
    PartitionStatus,
    fold_status,
)
from sealbook.model.status_line import StatusLine
from sealbook.model.universe import Account, Asset, AssetName, Universe
from tests.support import status
from tests.support.ledger import BACKENDS, KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load

ASSET = AssetName(KEY.source, KEY.query_name)
UNIVERSE = Universe(
    {ASSET: Asset(ASSET)},
    {KEY.source: {KEY.customer_id: Account(KEY.customer_id)}},
    {ASSET: KEY.logical_date},
)
EXPECTED = Expectations(UNIVERSE, datetime(2026, 1, 4, tzinfo=UTC))
WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}


def line(ledger: Ledger, key: PartitionKey = KEY) -> StatusLine:
    """Return the line of a partition, of a projection that is caught up."""
    ledger.projector().catch_up()
    return ledger.reader.statuses.line(key, EXPECTED)


def rows(ledger: Ledger) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return every row of every projection that is read, by its key, with all that it says."""
    query = select(status_series, partition_status).join(
        partition_status, partition_status.c.series_id == status_series.c.id
    )
    with ledger._database.read() as connection:
        found = connection.execute(query).all()
    return {(*row[2:5], day_of(row.day)): tuple(row[7:]) for row in found}


def could_not_fetch(run: int, key: PartitionKey = KEY) -> PartitionFailed:
    return PartitionFailed(
        key=key, run_id=run_id(run), attempt="1", failed_stage=Stage.EXTRACT,
        error_class=ErrorClass.PERMANENT, error="refused",
    )  # fmt: skip


def test_a_failed_retry_keeps_the_materialization(ledger: Ledger) -> None:
    """ADR-026."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    before = line(ledger)
    assert (before.display, before.last_attempt_outcome) == (Display.MATERIALIZED, AttemptOutcome.SUCCEEDED)
    ledger.judge([reject(KEY, 2)])
    after = line(ledger)
    assert after.last_materialization_run_id == before.last_materialization_run_id == run_id(1)
    assert after.last_materialization_at == before.last_materialization_at
    assert (after.last_attempt_run_id, after.last_attempt_outcome) == (run_id(2), AttemptOutcome.FAILED)
    assert after.last_attempt_stage is Stage.VALIDATE
    assert after.availability is Availability.PUBLISHED
    assert after.display is Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED
    assert str(after.row_version) > str(before.row_version)


def test_extraction_that_failed_for_good(ledger: Ledger) -> None:
    ledger.runs.tell([could_not_fetch(1)])
    found = line(ledger)
    assert (found.last_attempt_outcome, found.last_attempt_stage) == (AttemptOutcome.FAILED, Stage.EXTRACT)
    assert (found.display, found.availability) == (Display.NEVER_MATERIALIZED, Availability.NONE)
    assert found.attempted


def test_a_demoted_partition_is_withdrawn_before_and_after_it_is_hidden(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 1, again="a")])
    for _ in range(2):
        found = line(ledger)
        assert (found.display, found.availability) == (Display.WITHDRAWN, Availability.HIDDEN)
        assert found.last_materialization_run_id == run_id(1)
        ledger.pointers.hide()


def test_a_rolled_back_partition_was_materialized_then(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    load(ledger)
    newer = line(ledger)
    ledger.rollback(KEY, run_id(1), **WHO)
    found = line(ledger)
    assert found.last_materialization_run_id == found.last_attempt_run_id == run_id(1)
    assert found.display is Display.MATERIALIZED
    assert found.last_materialization_at is not None
    assert newer.last_materialization_at is not None
    assert found.last_materialization_at > newer.last_materialization_at


def test_a_newer_run_that_is_not_loaded_leaves_the_older_one_behind(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    found = line(ledger)
    assert (found.availability, found.last_materialization_run_id) == (Availability.BEHIND, run_id(1))


def test_a_revalidation_renews_the_code_version_and_nothing_else(ledger: Ledger) -> None:
    """R-PST-2: also where it is another run of the partition that is judged."""

    def judged(run: int, again: str, contract: str | None) -> StatusLine:
        ledger.judge([replace(accept(KEY, run, again=again), contract_hash=contract)])
        return line(ledger)

    assert judged(2, "first", "one").last_materialization_code_version is None
    load(ledger)
    before = line(ledger)
    assert before.last_materialization_code_version == "one"
    after = judged(2, "second", "two")
    assert after == before._replace(last_materialization_code_version="two", row_version=after.row_version)
    assert judged(1, "third", "three").last_materialization_code_version == "two"
    assert judged(2, "fourth", None).last_materialization_code_version is None


def test_an_event_of_another_engine_is_passed_over(ledger: Ledger) -> None:
    """It may use the name of a fact for what is none."""
    ledger.run_store.append_events(
        [
            RunEvent.new("another engine's", "PartitionFailed", "s", partition="not/a/key"),
            RunEvent.new("another engine's", "PartitionPublished", "s"),
        ]
    )
    ledger.judge([accept(KEY, 1)])
    assert line(ledger).attempted
    assert list(rows(ledger)) == [(*astuple(KEY)[:3], KEY.logical_date)]


MOMENTS = st.sampled_from([status.START + number * status.HOUR for number in range(3)])
FACTS = st.one_of(
    st.builds(status.sealed, st.integers(1, 3)),
    st.builds(status.failed, st.integers(1, 3), st.sampled_from([Stage.EXTRACT, Stage.LOAD])),
    st.builds(status.judged, st.integers(1, 3)),
    st.builds(status.rejected, st.integers(1, 3)),
    st.builds(status.published, st.integers(1, 3)),
    st.builds(status.hidden, st.integers(1, 3)),
    st.builds(status.cancelled, st.integers(1, 3)),
    st.builds(status.requeued, st.integers(1, 3)),
)
STORIES = st.lists(st.tuples(FACTS, st.sampled_from([KEY, OTHER]), MOMENTS), min_size=1, max_size=12)


@pytest.fixture(params=BACKENDS)
def shared(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """A ledger that knows three runs, whose rows each example puts in place of those of the one before."""
    on_disk = request.param == "postgresql"
    url = request.getfixturevalue("postgresql").create_ledger() if on_disk else "sqlite://"
    with open_ledger(url) as ledger:
        ledger._database.write(
            lambda connection: connection.execute(
                insert(run_head), [{"run_id": run_id(run), "last_seq": 1} for run in (1, 2, 3)]
            )
        )
        yield ledger


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(story=STORIES, data=st.data())
def test_any_order_duplicates_and_batches_end_in_the_same_rows(
    shared: Ledger, story: list[tuple[PartitionFact, PartitionKey, datetime]], data: st.DataObject
) -> None:
    """R-PST-2: those of the pure fold, also where a late success comes after a newer failure."""
    feed = [
        FeedEvent(position, replace(fact, key=key).to_event().stored(position, at))
        for position, (fact, key, at) in enumerate(story, 1)
    ]
    again = data.draw(st.lists(st.sampled_from(feed), max_size=6))
    shuffled = data.draw(st.permutations([*feed, *again]))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(shuffled)))))
    batches = [shuffled[begin:end] for begin, end in pairwise([0, *cuts, len(shuffled)])]

    def work(connection: Connection) -> None:
        for table in (partition_status, status_series):
            connection.execute(delete(table))
        number = begin_projection(connection, "partition_status").id
        for batch in batches:
            PartitionStatuses().apply(connection, number, batch)

    shared._database.write(work)
    expected = {}
    for key in {each.event.partition for each in feed}:
        folded = PartitionStatus(PartitionKey.parse(str(key)))
        of_key = [each for each in feed if each.event.partition == key]
        for each in of_key:
            fact, at = read_fact(each.event), each.event.persisted_at
            assert fact is not None
            assert at is not None
            folded = fold_status(folded, fact, at, each.position)
        expected[folded.key] = (folded.attempt, folded.materialization, of_key[-1].position)
    assert folds(shared) == expected


def folds(
    ledger: Ledger,
) -> dict[PartitionKey, tuple[LastAttempt | None, Materialization | None, int]]:
    """Return the rows as the fold has them."""
    attempted, materialized = run_head.alias("attempted"), run_head.alias("materialized")
    row = partition_status.c
    query = (
        select(status_series, partition_status, attempted.c.run_id, materialized.c.run_id)
        .join(partition_status, row.series_id == status_series.c.id)
        .outerjoin(attempted, attempted.c.number == row.attempt_run)
        .outerjoin(materialized, materialized.c.number == row.materialized_run)
    )
    found = {}
    with ledger._database.read() as connection:
        for each in connection.execute(query):
            *_, attempt_run, materialized_run = each
            attempt, materialization = None, None
            if attempt_run is not None:
                outcome = AttemptOutcome(each.attempt_outcome)
                stage = each.attempt_stage and Stage(each.attempt_stage)
                at = cast("datetime", time_of(each.attempt_at))
                attempt = LastAttempt(RunId(attempt_run), at, outcome, each.attempt_version, stage)
            if materialized_run is not None:
                at = cast("datetime", time_of(each.materialized_at))
                materialization = Materialization(RunId(materialized_run), at, each.materialized_version)
            key = PartitionKey(each.source, each.customer_id, each.query_name, day_of(each.day))
            found[key] = attempt, materialization, each.changed_version
    return found


def a_history(ledger: Ledger) -> None:
    """Publish, reject, demote, fail to fetch: something of each kind, over several runs."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 2), accept(OTHER, 2)])
    ledger.runs.tell([could_not_fetch(3, OTHER)])
    load(ledger)
    ledger.judge([reject(OTHER, 2, again="a")])


def test_built_again_from_the_log_it_is_the_same_row_for_row(ledger: Ledger) -> None:
    a_history(ledger)
    ledger.projector().catch_up()
    before = rows(ledger)
    assert len(before) == 2
    ledger.projector().rebuild()
    assert rows(ledger) == before
    with ledger._database.read() as connection:
        assert len(connection.execute(select(status_series.c.projection_id).distinct()).all()) == 1


def test_batches_of_any_size_end_in_the_same_rows(ledger: Ledger) -> None:
    a_history(ledger)
    status_projector(ledger, batch=1).catch_up()
    before = rows(ledger)
    status_projector(ledger, batch=3).rebuild()
    assert rows(ledger) == before


def status_projector(ledger: Ledger, batch: int) -> Projector:
    return Projector(ledger._database, ledger.run_store, PartitionStatuses(), ledger._clock, batch=batch)


def end_run(ledger: Ledger, run: int) -> None:
    """Let the log say that a run has ended, and retire it."""
    ledger.run_store.append_event(RunEvent.new(run_id(run), "RunStarted"))
    ledger.run_store.append_event(RunEvent.new(run_id(run), "RunCompleted"))
    ledger.projector().catch_up()
    ledger.run_store.retire_run(run_id(run), **WHO)


def test_retirement_keeps_the_rows_and_a_rebuild_takes_them_over(ledger: Ledger) -> None:
    """R-EVT-5: the facts of a retired run are gone from the log, and not from the status."""
    a_history(ledger)
    ledger.projector().catch_up()
    before = rows(ledger)
    for run in (1, 2, 3):
        end_run(ledger, run)
        assert rows(ledger) == before
        ledger.projector().rebuild()
        assert rows(ledger) == before
    assert not any(each.event.partition for each in ledger.run_store.fetch_feed())
    ledger.judge([accept(KEY, 4)])
    load(ledger)
    found = line(ledger)
    assert found.last_materialization_run_id == found.last_attempt_run_id == run_id(4)
    ledger.projector().rebuild()
    assert line(ledger) == found


def test_a_rebuild_takes_over_nothing_that_the_log_can_say(ledger: Ledger) -> None:
    """What is wrong in a row is put right."""
    a_history(ledger)
    ledger.projector().catch_up()
    before = rows(ledger)
    wrong = update(partition_status).values(attempt_version=1_000, attempt_outcome="CANCELLED")
    ledger._database.write(lambda connection: connection.execute(wrong))
    ledger.projector().rebuild()
    assert rows(ledger) == before


def test_two_books_in_one_database_never_see_each_others_rows(ledger_url: str) -> None:
    """A run belongs to the book that opened it, or that first worked on it."""
    scopes = [Scope(), Scope("acme"), Scope("acme", "trial")]
    keys = [replace(KEY, logical_date=KEY.logical_date + number * status.DAY) for number in range(3)]
    with ExitStack() as opened:
        ledgers = [opened.enter_context(open_ledger(ledger_url, scope=scope)) for scope in scopes]
        for number, (ledger, key) in enumerate(zip(ledgers, keys, strict=True), 1):
            own, foreign = ledger.open_run(), run_id(number)
            ledger.runs.open_steps(Stage.VALIDATE, [foreign])
            ledger.judge([replace(accept(key, 1), run_id=own), reject(key, number, again="b")])
            load(ledger)
        for ledger, key in zip(ledgers, keys, strict=True):
            ledger.projector().catch_up()
            for _ in range(2):
                lines = ledger.reader.statuses.lines(EXPECTED, limit=10)
                assert [each.key for each in lines if each.attempted] == [key]
                assert ledger.reader.statuses.counts(EXPECTED).displays[Display.MATERIALIZED] == 1
                assert ledger.reader.statuses.first_known() == {ASSET: key.logical_date}
                assert ledger.reader.statuses.lag().events == 0
                ledger.projector().rebuild()


def test_a_run_stays_with_the_book_that_opened_it(ledger_url: str) -> None:
    """Whoever works on it afterwards."""
    with open_ledger(ledger_url) as first, open_ledger(ledger_url, scope=Scope("acme")) as second:
        for opener, other in ((first, second), (second, first)):
            run = opener.open_run()
            other.runs.open_steps(Stage.VALIDATE, [run])
            other.judge([replace(accept(KEY, 1), run_id=run)])
        assert line(first).attempted
        for ledger in (first, second):
            ledger.projector().catch_up()
            with ledger._database.read() as connection:
                assert len(connection.execute(select(run_scope)).all()) == 1
        versions = {line(ledger).row_version for ledger in (first, second)}
        assert len(versions) == 2


def test_the_work_of_other_books_puts_nobody_behind(ledger_url: str) -> None:
    """R-EVT-9: PROJECTOR_LAG_HIGH says that something of one's own is not shown yet."""
    scopes = [Scope(), Scope("acme"), Scope("acme", "trial")]
    with ExitStack() as opened:
        ledgers = [opened.enter_context(open_ledger(ledger_url, scope=scope)) for scope in scopes]
        for number, worker in enumerate(ledgers, 1):
            run = worker.open_run()
            worker.judge([replace(accept(KEY, 1), run_id=run)])
            for ledger in ledgers:
                [lag] = [each for name, each in ledger.projector().lags().items() if name != "runs"]
                assert (lag.events > 0) == (ledger is worker), number
                assert ledger.reader.statuses.lag().events == lag.events
            for ledger in ledgers:
                ledger.projector().catch_up()


def test_a_reader_says_how_far_it_is_behind(ledger: Ledger) -> None:
    assert ledger.reader.statuses.lag().events == 0
    ledger.judge([accept(KEY, 1)])
    assert ledger.reader.statuses.lag().events == 1
    assert not ledger.reader.statuses.line(KEY, EXPECTED).attempted
    assert set(ledger.projector().lags()) == {"runs", "partition_status"}
    assert line(ledger).attempted
    assert ledger.reader.statuses.lag().events == 0
