"""Old runs go to the archive, and whoever asks gets the same answers before and after (R-EVT-5, R-EVT-11)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

import pytest
from sqlalchemy import text

from sealbook.errors import Conflict, Corrupt
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import FeedEvent
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model import Check, Severity
from sealbook.model.events import RunEvent
from sealbook.model.partition_events import PartitionHidden, PartitionSealed
from sealbook.model.selection import Selection
from sealbook.model.state import Status
from sealbook.status.archive import RunArchive, Segment, Span
from sealbook.status.retention import RetiredTo, Retirement, retire_runs
from sealbook.status.verify import LogDifference, Verified, verify_ledger
from tests.support.killing import started, wait_for_the_server
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load

AGE = timedelta(days=90)
CHECKS = (Check("json", passed=True), Check("rule", False, 2, (1, 7), "two", Severity.WARN))
NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD = NOW - AGE - timedelta(days=1)


def tell(ledger: Ledger, run: int) -> None:
    """Take two partitions through a run, one to its publication and one to its rejection, and end it."""
    store = ledger.run_store
    store.append_events(
        [
            RunEvent.new(run_id(run), "RunStarted"),
            *(
                PartitionSealed(
                    key=key,
                    run_id=run_id(run),
                    schema_version="1",
                    record_count=10,
                    payload_bytes=100,
                    payload_sha256="ab" * 32,
                    query_hash="cd" * 32,
                    extracted_at=OLD,
                ).to_event()
                for key in (OTHER, KEY)
            ),
        ]
    )
    ledger.judge([accept(KEY, run, checks=CHECKS), reject(OTHER, run)])
    load(ledger)
    store.append_event(RunEvent.new(run_id(run), "RunCompleted"))


def fill(url: str) -> None:
    """Tell two old runs and a new one, and one that is old and has not ended."""
    for run, at in ((1, OLD), (2, OLD), (3, NOW)):
        with open_ledger(url, clock=lambda at=at: at) as ledger:  # type: ignore[misc]
            tell(ledger, run)
    with open_ledger(url, clock=lambda: OLD) as ledger:
        ledger.run_store.append_event(RunEvent.new(run_id(9), "RunStarted"))


@pytest.fixture
def filled(ledger_url: str) -> Iterator[Ledger]:
    """A ledger with old runs and a new one, in which it is NOW."""
    fill(ledger_url)
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        yield ledger


@pytest.fixture
def archive(tmp_path: Path) -> RunArchive:
    """An empty archive in a folder."""
    return RunArchive(str(tmp_path / "archive"))


def retire(ledger: Ledger, archive: RunArchive, **options: Any) -> list[RetiredTo]:
    """Retire what is old, and return what became of each run."""
    return list(retire_runs(ledger.run_store, archive, AGE, actor="olga", reason="old", **options))


def became(runs: Iterable[RetiredTo]) -> dict[str, Retirement]:
    """Return what became of each run."""
    return {each.run_id: each.became for each in runs}


def verified(
    ledger: Ledger, archive: RunArchive, selection: Selection = EVERYTHING
) -> tuple[list[LogDifference], Verified]:
    """Return what `ledger verify` finds, and how much it compared."""
    progress = Verified()
    return list(verify_ledger(ledger.reader, progress, archive, selection)), progress


def said(ledger: Ledger, archive: RunArchive, run: int) -> list[RunEvent]:
    """Return all that a run ever said, from archive and log."""
    spans = map(Span.of, ledger.run_store.retirements(run_id(run)))
    archived = [event for span in spans for event in archive.events(span)]
    return archived + ledger.run_store.fetch_events(run_id(run))


def test_retired_runs_give_the_same_answers(filled: Ledger, archive: RunArchive) -> None:
    """History, verification and the events themselves are the same before and after; the log is shorter."""

    def answers() -> tuple[object, ...]:
        history = [filled.attempts(key) for key in (KEY, OTHER)]
        return history, verified(filled, archive), [said(filled, archive, run) for run in (1, 2, 3, 9)]

    before = answers()
    assert before[1] == ([], Verified(partitions=2))
    dry = retire(filled, archive, dry_run=True)
    assert became(dry) == {run_id(1): "due", run_id(2): "due", run_id(9): "open"}
    assert answers() == before
    assert {each.event.run_id for each in filled.run_store.fetch_feed()} >= {run_id(1), run_id(2)}

    done = retire(filled, archive)
    assert became(done) == {run_id(1): "retired", run_id(2): "retired", run_id(9): "open"}
    assert [(each.events, each.became) for each in done[:2]] == [(7, "retired"), (7, "retired")]
    assert answers() == before
    assert {each.event.run_id for each in filled.run_store.fetch_feed()} == {run_id(3), run_id(9)}
    assert became(retire(filled, archive)) == {run_id(9): "open"}


def test_a_retired_run_has_told_its_seals(filled: Ledger, archive: RunArchive) -> None:
    """Its sealed partitions are not told of again; those of a run that never told of them are."""
    runs = [(KEY, run_id(1)), (KEY, run_id(3)), (KEY, run_id(8))]
    assert filled.reader.partition_log.untold_seals(runs) == runs[2:]
    retire(filled, archive)
    assert filled.reader.partition_log.untold_seals(runs) == runs[2:]


def test_what_is_wrong_is_found_before_and_after(
    filled: Ledger, archive: RunArchive, ledger_url: str
) -> None:
    """R-EVT-11: a table that was changed behind the log's back differs from the archive as from the log."""
    with closing(Database(ledger_url)) as database:
        database.write(
            lambda connection: connection.execute(
                text(
                    "UPDATE partition_state SET error_message = 'x', attempt_count = 7"
                    " WHERE status = 'failed'"
                )
            )
        )
    before = verified(filled, archive)
    assert {each.field for each in before[0]} == {"error_message", "attempt_count"}
    retire(filled, archive)
    assert verified(filled, archive) == before


SELECTIONS = [
    Selection(keys=[KEY]),
    Selection(keys=[KEY, OTHER]),
    Selection(source=OTHER.source),
    Selection(customers=OTHER.customer_id),
    Selection(source="another", customers=OTHER.customer_id),
    Selection(customers=["nobody", OTHER.customer_id], queries=OTHER.query_name),
    Selection(queries=KEY.query_name),
    Selection(queries="nothing"),
    Selection(since=KEY.logical_date, until=KEY.logical_date),
    Selection(since=OTHER.logical_date),
    Selection(until=min(KEY.logical_date, OTHER.logical_date)),
    Selection(customers=[]),
]


def test_a_selection_is_verified_as_it_is_among_all(
    filled: Ledger, archive: RunArchive, ledger_url: str
) -> None:
    """R-EVT-11: in the log, in the archive, and where a run is in neither."""
    with closing(Database(ledger_url)) as database:
        database.write(
            lambda connection: connection.execute(text("UPDATE partition_state SET attempt_count = 7"))
        )
        database.write(lambda connection: connection.execute(text("UPDATE pointer SET schema_version = '0'")))

    def check(archive: RunArchive, known: bool) -> None:
        whole, _ = verified(filled, archive)
        assert {each.key for each in whole} == ({KEY, OTHER} if known else set())
        for selection in SELECTIONS:
            differences, progress = verified(filled, archive, selection)
            chosen = [key for key in (KEY, OTHER) if selection.matches(key)]
            assert differences == [each for each in whole if each.key in chosen], selection
            assert (progress.partitions, progress.retired) == (
                (len(chosen), 0) if known else (0, len(chosen))
            ), selection

    check(archive, known=True)
    retire(filled, archive)
    check(archive, known=True)
    check(RunArchive(f"{archive.url}-elsewhere"), known=False)


def test_a_late_event_goes_to_a_segment_of_its_own(ledger_url: str, archive: RunArchive) -> None:
    """R-EVT-5: a run may say more years later; it is retired again, and nothing of it is lost."""
    fill(ledger_url)
    late = PartitionHidden(key=KEY, run_id=run_id(1), attempt="99", status=Status.FAILED).to_event()
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        retire(ledger, archive)
        ledger.run_store.append_event(late)
        everything = said(ledger, archive, 1)
        assert [event.run_seq for event in everything] == list(range(1, 9))
        before = verified(ledger, archive)
        assert became(retire(ledger, archive)) == {run_id(9): "open"}  # it has just said something
    with open_ledger(ledger_url, clock=lambda: NOW + AGE + AGE) as ledger:
        assert became(retire(ledger, archive))[run_id(1)] == "retired"
        assert said(ledger, archive, 1) == everything
        assert verified(ledger, archive) == before
        assert [each.event_count for each in ledger.run_store.retirements(run_id(1))] == [7, 1]


class Interrupting(RunArchive):
    """An archive in which a run says one more thing just after it was archived."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        super().__init__(url)
        self._ledger = ledger

    def check(self, segment: Segment) -> None:
        """Read back, while another process appends."""
        super().check(segment)
        self._ledger.run_store.append_event(RunEvent.new(segment.span.run_id, "Late"))


def test_what_comes_after_it_was_archived_is_not_lost(filled: Ledger, archive: RunArchive) -> None:
    """A run that moved on stays in the log as a whole."""
    with pytest.raises(Conflict, match="is 7, and not 6"):
        filled.run_store.retire_run(run_id(1), actor="a", reason="r", last_seq=6)
    moved = retire(filled, Interrupting(archive.url, filled))
    assert became(moved) == {run_id(1): "moved", run_id(2): "moved", run_id(9): "open"}
    assert [len(said(filled, archive, run)) for run in (1, 2)] == [8, 8]
    assert filled.run_store.retirements() == []


def test_an_archive_that_does_not_hold_what_it_should_is_refused(
    filled: Ledger, archive: RunArchive, tmp_path: Path
) -> None:
    """Nothing is retired unless it was read back; a file that was damaged later is named."""
    span = Span(run_id(1), 1, 7)
    archive.write(span, filled.run_store.events_by_partition(run_id(2), 7))
    with pytest.raises(Corrupt, match="names other events than the log has"):
        retire(filled, archive)
    assert filled.run_store.retirements() == []

    sound = RunArchive(str(tmp_path / "sound"))
    retire(filled, sound)
    segment = sound.find(span)
    assert segment is not None
    file = tmp_path / "sound" / segment.file
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(Corrupt, match=r"parquet cannot be read"):
        verified(filled, sound)


def test_runs_that_are_in_no_archive_are_passed_over(filled: Ledger, archive: RunArchive) -> None:
    """Their partitions are counted, as nobody can build them again."""
    filled.run_store.retire_run(run_id(1), actor="olga", reason="old")
    assert verified(filled, archive) == ([], Verified(partitions=0, retired=2))


def test_who_archives_second_loses_nothing_to_who_came_first(filled: Ledger, archive: RunArchive) -> None:
    """The first deletes what is left of others; one that was only slow finds the first one's manifest."""
    span = Span(run_id(1), 1, 7)

    def slowly() -> Iterator[FeedEvent]:
        yield from filled.run_store.events_by_partition(run_id(1), 7)
        assert became(retire(filled, archive))[run_id(1)] == "retired"

    second = archive.write(span, slowly())
    assert second == archive.find(span)
    archive.check(second)
    assert len(list(Path(archive.url, span.directory).glob("*.parquet"))) == 1


def test_an_archive_on_an_object_store(filled: Ledger, s3_url: str) -> None:
    archive = RunArchive(s3_url)
    before = verified(filled, archive), said(filled, archive, 1)
    assert became(retire(filled, archive))[run_id(1)] == "retired"
    assert (verified(filled, archive), said(filled, archive, 1)) == before


class Stopping(RunArchive):
    """An archive that tells a pipe when it has got to a point of the first run, and goes no further."""

    def __init__(self, url: str, point: str, pipe: Any) -> None:
        super().__init__(url)
        self._point = point
        self._pipe = pipe

    def reached(self, point: str) -> None:
        """Wait to be killed, if this is the point."""
        if point == self._point:
            self._pipe.send(point)
            time.sleep(600)

    def write(self, span: Span, events: Iterable[FeedEvent]) -> Segment:
        """Write, with a stop in the middle of the file and one after the manifest."""

        def slowly() -> Iterator[FeedEvent]:
            yield from events
            self.reached("writing")

        segment = super().write(span, slowly())
        self.reached("archived")
        return segment

    def check(self, segment: Segment) -> None:
        """Read back, with a stop after it."""
        super().check(segment)
        self.reached("checked")


def retire_until_killed(url: str, archive_url: str, point: str, pipe: Any) -> None:
    """Retire runs in a process of its own."""
    archive = Stopping(archive_url, point, pipe)
    with open_ledger(url, clock=lambda: NOW) as ledger:
        for _ in retire_runs(ledger.run_store, archive, AGE, actor="olga", reason="old"):
            archive.reached("retired")


def test_a_kill_at_any_point_loses_and_repeats_nothing(
    ledger_url: str, tmp_path: Path, processes: ForkServerContext
) -> None:
    """SIGKILL in the middle of the file, after the manifest, after the check, and after the first run."""
    fill(ledger_url)
    archive = RunArchive(str(tmp_path / "archive"))

    def answers(retired: int) -> tuple[object, ...]:
        with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
            assert len(ledger.run_store.retirements()) == retired
            return verified(ledger, archive), [said(ledger, archive, run) for run in (1, 2, 3)]

    before = answers(0)
    for point, retired in (("writing", 0), ("archived", 0), ("checked", 0), ("retired", 1)):
        with started(processes, retire_until_killed, ledger_url, archive.url, point) as reached:
            assert reached == point
        wait_for_the_server(ledger_url)
        assert answers(retired) == before
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        assert became(retire(ledger, archive)) == {run_id(2): "retired", run_id(9): "open"}
    assert answers(2) == before
    assert len(list((tmp_path / "archive").glob("*/*.json"))) == 2
    # Also of the process that was killed while it wrote, nothing is left.
    segments = [archive.find(Span(run_id(run), 1, 7)) for run in (1, 2)]
    files = {str(path.relative_to(archive.url)) for path in Path(archive.url).glob("*/*.parquet")}
    assert files == {each.file for each in segments if each}


MANY = 150


def test_many_archived_runs_are_verified_with_few_open_files(ledger_url: str, archive: RunArchive) -> None:
    """Ever more runs are retired, and a process may open only so many files."""
    with open_ledger(ledger_url, clock=lambda: OLD) as ledger:
        for run in range(1, MANY + 1):
            ledger.run_store.append_event(RunEvent.new(run_id(run), "RunStarted"))
            ledger.judge([accept(KEY, run), reject(OTHER, run)])
            ledger.run_store.append_event(RunEvent.new(run_id(run), "RunCompleted"))
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        assert set(became(retire(ledger, archive)).values()) == {Retirement.RETIRED}
        assert len(ledger.run_store.retirements()) == MANY
        before, most = getrlimit(RLIMIT_NOFILE)
        open_now = len(list(Path("/proc/self/fd").iterdir()))
        setrlimit(RLIMIT_NOFILE, (open_now + 100, most))
        try:
            assert verified(ledger, archive) == ([], Verified(partitions=2))
        finally:
            setrlimit(RLIMIT_NOFILE, (before, most))
