"""R-WH-2, R-WH-3: a swap publishes a batch in one transaction, what is still the authority, and only once."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from sealbook.errors import Conflict, InvalidInput, Permanent
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.pointers import Pointers, writes
from sealbook.ledger.schedule.following import WorkFollower
from sealbook.model import PartitionKey, Status
from sealbook.model.artifacts import Action, LoadRecord, SwapResult
from sealbook.model.partition_events import PartitionHidden, PartitionPublished, read_fact
from sealbook.model.publication import PointerStatus
from sealbook.warehouse.layout import location_of
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id, until_it_waits
from tests.support.pointers import artifact, load, planned, seen, staged

MANY = [PartitionKey("demo", f"c{number}", "clicks", date(2026, 1, 1)) for number in range(300)]


class Ticking:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def pointers(ledger_url: str) -> Any:
    """Pointers under a ticking clock."""
    database = Database(ledger_url)
    yield Pointers(database, LedgerClock(Ticking()), WorkFollower())
    database.close()


def test_a_location_that_follows_from_the_artifact_is_not_spelt(
    ledger: Ledger, pointers: Pointers, ledger_url: str
) -> None:
    """R-WH-6: the layout's is told all the same, in each answer; another is kept as it is."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    usual = replace(staged(KEY, 1), location=location_of(staged(KEY, 1).artifact))
    pointers.swap([usual, staged(OTHER, 1)])
    locations = {KEY: usual.location, OTHER: staged(OTHER, 1).location}
    assert {each.key: each.location for each in pointers.load_records()} == locations
    assert {each.key: each.location for each in pointers.stored_artifacts()} == locations
    assert {each.key: each.location for each in pointers.published()} == locations
    assert {each.key: each.digest for each in pointers.published()}[KEY] == usual.digest
    with closing(Database(ledger_url)) as database, database.read() as connection:
        rows = connection.execute(text("SELECT location, length(digest) FROM load_record")).all()
    assert set(rows) == {(None, 32), (locations[OTHER], 32)}


def test_a_swap_publishes(ledger: Ledger, pointers: Pointers) -> None:
    """The load record has all that the contract asks for, and the pointer names the run from now on."""
    ledger.judge([accept(KEY, 1)])
    assert pointers.swap([staged(KEY, 1)]) == SwapResult(1, loaded=(KEY,))
    at = datetime(2026, 2, 1, 0, 0, 1, tzinfo=UTC)
    assert list(pointers.load_records()) == [
        LoadRecord(
            *(KEY.source, KEY.customer_id, KEY.query_name, KEY.logical_date, run_id(1), "1"),
            loaded_at=at,
            record_count=10,
            bytes=110,
            digest=staged().digest,
            location=staged().location,
            parts=1,
        )
    ]
    pointer = pointers.pointer(KEY)
    assert pointer is not None
    assert (pointer.key, pointer.status) == (KEY, PointerStatus.AVAILABLE)
    assert pointer[4:] == (run_id(1), "1", 1, None, at, None)
    assert pointers.pointer(OTHER) is None


def test_swapping_again_changes_nothing(ledger: Ledger, pointers: Pointers) -> None:
    """R-WH-2: the same run again gives the identical load record, and no new version or history."""
    ledger.judge([accept(KEY, 1)])
    pointers.swap([staged(KEY, 1)])
    before = list(pointers.load_records()), pointers.history(KEY), pointers.version()
    assert pointers.swap([staged(KEY, 1)]) == SwapResult(1, unchanged=(KEY,))
    assert (list(pointers.load_records()), pointers.history(KEY), pointers.version()) == before
    assert pointers.swap([]) == SwapResult(1)


def test_a_replacement_closes_the_old_span_and_opens_the_new(ledger: Ledger, pointers: Pointers) -> None:
    """Pointer history has valid_from and valid_to, without gap or overlap."""
    for run in (1, 2, 3):
        ledger.judge([accept(KEY, run)])
        pointers.swap([staged(KEY, run)])
    spans = [(each.run_id, each.valid_from, each.valid_to) for each in pointers.history(KEY)]
    assert spans == [(run_id(1), 1, 2), (run_id(2), 2, 3), (run_id(3), 3, None)]
    first, second, third = pointers.history(KEY)
    assert (first.closed_at, second.closed_at) == (second.published_at, third.published_at)
    assert [each.status for each in (first, third)] == [PointerStatus.UNAVAILABLE, PointerStatus.AVAILABLE]
    assert [each.run_id for each in pointers.pointers()] == [run_id(3)]


def test_an_earlier_run_comes_back_with_its_own_load_record(ledger: Ledger, pointers: Pointers) -> None:
    """R-WH-2: rolled back to, a run has the load record of its first load, loaded_at included."""
    ledger.judge([accept(KEY, 1)])
    pointers.swap([staged(KEY, 1)])
    [record] = pointers.load_records()
    ledger.judge([accept(KEY, 2)])
    pointers.swap([staged(KEY, 2)])
    ledger.rollback(KEY, run_id(1), actor="ann", reason="the second is worse")
    assert pointers.swap([staged(KEY, 1)]).unchanged == (KEY,)
    assert next(iter(pointers.load_records())) == record
    assert seen(ledger) == {KEY: run_id(1)}


def test_what_is_no_longer_the_authority_is_left_alone(ledger: Ledger) -> None:
    """R-WH-3: each partition is checked; the others of the batch are published all the same."""
    judged, never = MANY[:6], MANY[6]
    ledger.judge([accept(key, 1) for key in judged])
    batch = [staged(key, 1) for key in (*judged, never)]
    ledger.judge([accept(judged[0], 2), reject(judged[1], 1, again="r"), accept(judged[2], 2, version="2")])
    ledger.judge([reject(judged[3], 1, again="r")])
    ledger.requeue([judged[3]], actor="ann", reason="again")
    result = ledger.pointers.swap(batch)
    assert result.loaded == tuple(judged[4:])
    assert result.moved == result.skipped == (*judged[:4], never)
    assert seen(ledger, "clicks") == dict.fromkeys(judged[4:], run_id(1))
    assert ledger.pointers.history(judged[0]) == []
    assert {each.key for each in ledger.pointers.load_records()} == set(judged[4:])


def test_a_stale_swap_never_brings_an_old_run_back(ledger: Ledger) -> None:
    """R-WH-3: a loader that was slow finds the newer run published, and changes nothing."""
    ledger.judge([accept(KEY, 1)])
    slow = staged(KEY, 1)
    ledger.judge([accept(KEY, 2)])
    load(ledger)
    assert ledger.pointers.swap([slow]).moved == (KEY,)
    assert seen(ledger) == {KEY: run_id(2)}


def test_an_artifact_with_another_number_of_records_is_not_published(ledger: Ledger) -> None:
    """What was accepted had ten records: an artifact with nine has lost one on the way."""
    ledger.judge([accept(KEY, 1, records=10), accept(OTHER, 1, records=10)])
    result = ledger.pointers.swap([staged(KEY, 1, records=9), staged(OTHER, 1, records=10)])
    assert (result.miscounted, result.loaded) == ((KEY,), (OTHER,))
    assert seen(ledger) == {OTHER: run_id(1)}


def test_another_digest_of_a_loaded_run_is_a_conflict(ledger: Ledger) -> None:
    """R-WH-2: an artifact is a function of its raw partition; nothing of the batch is published."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    with pytest.raises(Conflict, match=f"{KEY} run {run_id(1)}"):
        ledger.pointers.swap([staged(OTHER, 1), staged(KEY, 1, content="other")])
    assert seen(ledger) == {KEY: run_id(1)}
    assert ledger.pointers.version() == 1


def test_a_batch_has_each_partition_once(ledger: Ledger) -> None:
    """The same artifact twice is one; two of a partition are a mistake of the caller."""
    ledger.judge([accept(KEY, 1)])
    with pytest.raises(InvalidInput, match="one artifact of each partition"):
        ledger.pointers.swap([staged(KEY, 1), staged(KEY, 2)])
    with pytest.raises(InvalidInput, match="a Staged"):
        ledger.pointers.swap([artifact()])  # type: ignore[list-item]
    assert ledger.pointers.swap([staged(KEY, 1), staged(KEY, 1)]) == SwapResult(1, loaded=(KEY,))


def test_thousands_swap_in_one_transaction_of_few_statements(ledger: Ledger) -> None:
    """R-WH-3: the number of statements does not depend on the number of partitions."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
        statements.append(text)

    event.listen(ledger._database.engine, "before_cursor_execute", note)
    counts = []
    for run, keys in ((1, MANY), (2, MANY), (3, MANY[:2]), (4, MANY)):
        ledger.judge([accept(key, run) for key in keys])
        statements.clear()
        result = ledger.pointers.swap([staged(key, run) for key in keys])
        assert len(result.loaded + result.replaced) == len(keys)
        counts.append(len(statements))
    assert len(set(counts)) == 1
    assert counts[0] < 20


def test_a_swap_is_all_or_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-WH-4: when the transaction fails, readers stay on what was published; the next swap does it all."""
    ledger.judge([accept(key, 1) for key in MANY])
    load(ledger)
    ledger.judge([accept(key, 2) for key in MANY])

    def fail(*_: object) -> None:
        raise Permanent("no room")

    with monkeypatch.context() as patched:
        patched.setattr(writes, "append_new", fail)
        with pytest.raises(Permanent, match="no room"):
            ledger.pointers.swap([staged(key, 2) for key in MANY])
    assert seen(ledger, "clicks") == dict.fromkeys(MANY, run_id(1))
    assert ledger.pointers.version() == 1
    assert load(ledger).replaced == tuple(sorted(MANY))
    assert seen(ledger, "clicks") == dict.fromkeys(MANY, run_id(2))


def test_every_move_is_a_fact_and_what_changed_nothing_is_none(ledger: Ledger) -> None:
    """R-EVT-11: a fact names the version of the warehouse since which it holds."""
    ledger.judge([accept(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    ledger.judge([accept(KEY, 2)])
    ledger.pointers.swap([staged(KEY, 2), staged(OTHER, 1)])
    ledger.judge([reject(KEY, 2, again="r")])
    ledger.pointers.hide()
    ledger.pointers.hide()
    facts = [read_fact(event) for event in ledger.reader.partition_log.events(KEY)]
    moves = [
        (type(fact), fact.run_id, fact.attempt)
        for fact in facts
        if isinstance(fact, PartitionPublished | PartitionHidden)
    ]
    assert moves == [
        (PartitionPublished, run_id(1), "1"),
        (PartitionPublished, run_id(2), "2"),
        (PartitionHidden, run_id(2), "3"),
    ]
    assert facts[-1] == PartitionHidden(key=KEY, run_id=run_id(2), attempt="3", status=Status.FAILED)


def test_hide_ends_the_pointers_that_are_no_longer_safe(ledger: Ledger) -> None:
    """R-WH-5: the loader marks a demoted partition unavailable, once, and nothing else."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    assert ledger.pointers.hide() == []
    assert ledger.pointers.version() == 1
    ledger.judge([reject(KEY, 1, again="r")])
    assert ledger.pointers.hide() == [KEY]
    assert ledger.pointers.hide() == []
    assert ledger.pointers.version() == 2
    [span] = ledger.pointers.history(KEY)
    assert (span.status, span.valid_from, span.valid_to) == (PointerStatus.UNAVAILABLE, 1, 2)
    statuses = {each.key: each.status for each in ledger.pointers.pointers()}
    assert statuses == {KEY: PointerStatus.UNAVAILABLE, OTHER: PointerStatus.AVAILABLE}


@pytest.mark.parametrize("moment", ["DELETE FROM authority_change", "COMMIT"])
def test_a_verdict_between_the_check_and_the_commit_is_not_lost(
    postgresql: PostgresqlServer, moment: str
) -> None:
    """R-WH-3: the swap locks no state, and still leaves what one before the verdict would."""
    url = postgresql.create_ledger()
    with open_ledger(url) as ledger, open_ledger(url) as validator:
        ledger.judge([accept(KEY, 1)])
        load(ledger)
        ledger.judge([accept(KEY, 2)])

        def judge(*_: object) -> None:
            validator.judge([accept(KEY, 3)])
            assert seen(validator) == {KEY: run_id(1)}

        def before(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
            if text.startswith(moment):
                judge()

        event.listen(ledger._database.engine, "before_cursor_execute", before)
        if moment == "COMMIT":
            event.listen(ledger._database.engine, "commit", judge)
        assert ledger.pointers.swap([staged(KEY, 2)]).replaced == (KEY,)
        assert seen(validator) == {KEY: run_id(2)}
        assert planned(validator) == [(Action.REPLACE, KEY)]


def test_a_verdict_on_the_very_run_that_is_swapped_waits_for_the_commit(postgresql: PostgresqlServer) -> None:
    """R-WH-5: the swap has locked the run's log, so a demotion comes after it, and consumers follow."""
    url = postgresql.create_ledger()
    with open_ledger(url) as ledger, open_ledger(url) as validator:
        ledger.judge([accept(KEY, 1)])
        judging = threading.Thread(target=validator.judge, args=[[reject(KEY, 1, again="r")]])

        def before(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
            if text.startswith("DELETE FROM authority_change"):
                judging.start()
                until_it_waits(validator._database, judging)

        event.listen(ledger._database.engine, "before_cursor_execute", before)
        assert ledger.pointers.swap([staged(KEY, 1)]).loaded == (KEY,)
        judging.join()
        assert seen(validator) == {}
        assert planned(validator) == [(Action.HIDE, KEY)]
