"""A run with the payload of the published one is published in its files: nothing is staged or lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from sealbook.book import Book
from sealbook.config import Settings
from sealbook.ledger.pointers import rows
from sealbook.load import sharing
from sealbook.load.results import LoadEnding
from sealbook.model import Verdict
from sealbook.model.partition_events import PartitionPublished, read_fact
from sealbook.model.selection import Selection
from sealbook.status.verify import verify_ledger
from sealbook.warehouse.store import ArtifactStore
from sealbook.warehouse.verification import Verification
from tests.support.ledger import accept, run_id
from tests.support.pointers import artifact
from tests.support.published import CONTRACTS, open_book, write
from tests.support.sharing import KEY, ROWS, clean_up, judge, load, put, seal, share


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    """A book whose first partition is published as run 1."""
    (tmp_path / "raw").mkdir()
    opened = open_book(ledger_url, tmp_path / "warehouse", {"1": CONTRACTS["1"]}, "1")
    with Book(replace(opened.settings, raw=str(tmp_path / "raw"))) as book:
        seal(book, 1)
        put(book, 1)
        yield book


def files(book: Book) -> dict[str, int]:
    """Return every file of the warehouse, and when it was written."""
    root = Path(book.settings.warehouse)
    return {str(file): file.stat().st_mtime_ns for file in root.rglob("*.parquet")}


def check(book: Book) -> None:
    """See that artifacts, pointers, states and log agree."""
    verification = Verification(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse))
    assert [each for found in verification.artifacts(Selection()) for each in found.mismatches] == []
    assert list(verification.pointers(Selection())) == []
    assert list(verify_ledger(book.ledger.reader)) == []


def runs_read(book: Book) -> set[str]:
    """Read the rows that consumers get, and return the runs that they are of."""
    table = book.table("campaign_daily", columns=["id", "run_id"])
    assert table.num_rows == ROWS
    return set(table["run_id"].to_pylist())


def test_nothing_is_staged_or_written(book: Book) -> None:
    before = files(book)
    share(book, 2)
    assert files(book) == before
    assert runs_read(book) == {run_id(2)}
    first, second = book.ledger.pointers.load_records()
    assert (first.files_run_id, second.files_run_id) == (None, run_id(1))
    assert second[7:12] == first[7:12]  # records, bytes, digest, location, parts
    assert load(book) == []
    check(book)


def test_the_verdict_and_the_event_are_the_usual_ones(book: Book) -> None:
    """R-STATE-3, R-EVT-10: an attempt, authority, and a publication that says whose files it shares."""
    share(book, 2)
    assert [each.run_id for each in book.ledger.attempts(KEY)] == [run_id(1), run_id(2)]
    assert book.ledger.state(KEY).current_run_id == run_id(2)
    fact = read_fact(list(book.ledger.reader.partition_log.events(KEY))[-1])
    assert isinstance(fact, PartitionPublished)
    assert (fact.run_id, fact.replaced_run_id, fact.files_run_id) == (run_id(2), run_id(1), run_id(1))


def test_a_run_that_shares_is_shared_in_turn(book: Book) -> None:
    share(book, 2)
    share(book, 3)
    assert [each.files_run_id for each in book.ledger.pointers.load_records()] == [None, run_id(1), run_id(1)]
    check(book)


@pytest.mark.parametrize("what", ["payload", "version", "validator", "file", "seal"])
def test_what_may_differ_is_staged(book: Book, what: str) -> None:
    seal(book, 2, "b" if what == "payload" else "a", version="2" if what == "version" else "1")
    verdict = accept(KEY, 2, records=ROWS)
    book.ledger.judge([replace(verdict, validator_version="v2") if what == "validator" else verdict])
    gone = {"file": Path(book.settings.warehouse), "seal": Path(book.settings.raw)}.get(what)
    for file in [] if gone is None else [each for each in gone.rglob("*") if each.is_file()]:
        file.unlink()
    with pytest.raises(AssertionError, match="Spark was started"):
        load(book)


def test_clean_up_keeps_files_for_whoever_needs_them(book: Book) -> None:
    """R-WH-7: the pointer to run 1 has ended, but its files are those of run 2."""
    share(book, 2)
    assert clean_up(book) == 0
    check(book)
    cut = book.ledger.pointers.create_cut(note="of run 2")
    seal(book, 3, "b")
    put(book, 3)
    assert clean_up(book) == 0
    assert book.table("campaign_daily", cut=cut.token, columns=["id"]).num_rows == ROWS
    book.ledger.pointers.drop_cut(cut.token)
    assert clean_up(book) == 1
    assert [each.artifact.run_id for each in book.ledger.pointers.stored_artifacts()] == [run_id(3)]
    assert clean_up(book) == 0
    check(book)


def test_a_rollback_goes_both_ways(book: Book) -> None:
    """R-WH-9: and at once, as the files are there."""
    share(book, 2)
    for run in (1, 2, 1):
        book.ledger.rollback(KEY, run_id(run), actor="ann", reason="to see")
        assert runs_read(book) == {run_id(run)}
        assert clean_up(book) == 0
        check(book)


def test_files_that_are_written_anew_are_those_of_all_that_share_them(book: Book) -> None:
    """R-WH-2: whichever run is loaded again after a clean-up, each keeps its record."""
    share(book, 2)
    records = list(book.ledger.pointers.load_records())
    seal(book, 3, "b")
    put(book, 3)
    clean_up(book)
    book.ledger.rollback(KEY, run_id(2), actor="ann", reason="to see")
    [item] = book.ledger.pointers.plan()
    assert item.earlier is not None
    assert (item.run_id, item.copy, item.earlier.kept, item.earlier.files_run_id) == (
        run_id(2),
        1,
        False,
        run_id(1),
    )
    # What a stager does with such an order is in tests/spark/test_load.py.
    again = write(book.settings.warehouse, KEY, 1, contract=CONTRACTS["1"], rows=ROWS, copy=1)
    shared = replace(again, artifact=artifact(KEY, 2), files_run_id=run_id(1))
    assert book.ledger.pointers.swap([shared]).loaded == (KEY,)
    assert runs_read(book) == {run_id(2)}
    assert list(book.ledger.pointers.load_records())[:2] == records
    assert [each.copy for each in book.ledger.pointers.stored_artifacts()] == [1, 1, 0]
    book.ledger.rollback(KEY, run_id(1), actor="ann", reason="to see")
    assert runs_read(book) == {run_id(1)}
    check(book)


def test_files_that_a_clean_up_took_since_the_plan_are_not_shared(book: Book) -> None:
    seal(book, 2)
    judge(book, 2)
    [same] = book.ledger.pointers.replacements()
    book.ledger.judge(
        [Verdict.reject(KEY, run_id(2), error_message="bad", validator_version="v1", revalidation_id="x")]
    )
    book.ledger.pointers.hide()
    assert clean_up(book) == 1
    book.ledger.judge([accept(KEY, 2, again="y", records=ROWS)])
    assert book.ledger.pointers.swap([same.shared(timedelta())]).removed == (KEY,)
    assert list(book.ledger.pointers.replacements()) == []


def test_another_load_may_have_staged_it_meanwhile(book: Book) -> None:
    """Its record stands: the pointer names the files that it says, or waits for the next load."""
    seal(book, 2)
    judge(book, 2)
    [same] = book.ledger.pointers.replacements()
    put(book, 2)
    assert book.ledger.pointers.swap([same.shared(timedelta())]).unchanged == (KEY,)
    assert [each.files_run_id for each in book.ledger.pointers.load_records()] == [None, None]
    book.ledger.rollback(KEY, run_id(1), actor="ann", reason="to see")
    book.ledger.rollback(KEY, run_id(2), actor="ann", reason="to see")
    check(book)


def test_files_of_its_own_that_a_killed_load_left_are_removed(book: Book) -> None:
    write(book.settings.warehouse, KEY, 2, contract=CONTRACTS["1"], rows=ROWS)
    share(book, 2)
    assert clean_up(book) == 1
    assert len(files(book)) == 1
    check(book)


def load_and_die(settings: Settings, step: str) -> None:
    """Load, and be killed before the swap, in it, or after it."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    swap = rows.publish
    match step:
        case "before the swap":
            sharing.publish = die  # type: ignore[assignment, attr-defined]
        case "in the swap":
            rows.publish = lambda *arguments: (swap(*arguments), die())  # type: ignore[assignment, func-returns-value]
        case "after the swap":
            sharing._shared = die  # type: ignore[assignment]
    with Book(settings) as book:
        load(book)


@pytest.mark.parametrize("step", ["before the swap", "in the swap", "after the swap"])
def test_a_load_that_is_killed_is_finished_by_the_next(
    book: Book, processes: ForkServerContext, step: str
) -> None:
    """R-WH-4."""
    seal(book, 2)
    judge(book, 2)
    process = processes.Process(target=load_and_die, args=(book.settings, step))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    is_done = step == "after the swap"
    assert runs_read(book) == {run_id(2 if is_done else 1)}
    assert [each.ending for each in load(book)] == ([] if is_done else [LoadEnding.IDENTICAL])
    assert runs_read(book) == {run_id(2)}
    assert clean_up(book) == 0
    check(book)
