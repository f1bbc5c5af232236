"""A failed extraction is seen: coverage and `state inspect` tell the last attempt, its error and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

import sealbook
from sealbook.book import Book
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey, RunId, Status, Verdict
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage
from sealbook.model.publication import CoverageKind
from sealbook.model.selection import Selection
from sealbook.views.states import StateListing
from tests.contract.test_runs import NOW
from tests.support.pointers import load

DAY = date(2026, 1, 1)
NEXT = DAY + timedelta(days=1)
A, B, C = (PartitionKey("demo", customer, "campaign_daily", DAY) for customer in "abc")


def fail(ledger: Ledger, key: PartitionKey, run: RunId, attempt: int = 1, error: str = "no answer") -> None:
    ledger.runs.tell(
        [
            PartitionFailed(
                key=key, run_id=run, attempt=str(attempt), failed_stage=Stage.EXTRACT,
                error_class=ErrorClass.TRANSIENT, error=error,
            )
        ]
    )  # fmt: skip


def seal(ledger: Ledger, key: PartitionKey, run: RunId) -> None:
    ledger.runs.tell(
        [
            PartitionSealed(
                key=key, run_id=run, schema_version="1", record_count=10, payload_bytes=2,
                payload_sha256="a" * 64, query_hash="b" * 64, extracted_at=NOW,
            )
        ]
    )  # fmt: skip


def accept(ledger: Ledger, key: PartitionKey, run: RunId) -> None:
    ledger.judge([Verdict.accept(key, run, schema_version="1", record_count=10, validator_version="v")])


def failures(ledger: Ledger, **asked: object) -> dict[PartitionKey, str]:
    found = list(ledger.reader.partition_log.last_failures(Selection(**asked)))  # type: ignore[arg-type]
    assert [key for key, _ in found] == sorted(key for key, _ in found)
    return {key: failure.error for key, failure in found}


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Iterator[Book]:
    """A book of three accounts, on each database, at which nobody has been at work."""
    source = {"queries": "demo.yaml", "customers": ["a", "b", "c"]}
    settings = {"ledger": ledger_url, "sources": {"demo": source}}
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    with sealbook.open(tmp_path) as opened:
        yield opened


def test_a_failure_stands_until_something_overtakes_it(ledger: Ledger) -> None:
    """What the same run does later does, and whatever a newer run does; an older run changes nothing."""
    old, run, newer = (ledger.open_run() for _ in range(3))
    for key in (A, B, C):
        fail(ledger, key, run)
    assert failures(ledger) == {A: "no answer", B: "no answer", C: "no answer"}
    fail(ledger, A, run, attempt=2, error="once more")
    fail(ledger, B, old, error="of an old run")
    seal(ledger, C, old)
    assert failures(ledger) == {A: "once more", B: "no answer", C: "no answer"}
    seal(ledger, A, run)
    fail(ledger, B, newer, error="of a new run")
    seal(ledger, C, newer)
    assert failures(ledger) == {B: "of a new run"}


def test_failures_of_what_is_asked_for(ledger: Ledger) -> None:
    """By key, by customer of any source, by source; names that begin alike are told apart."""
    run = ledger.open_run()
    longer = PartitionKey("demo", "ab", "campaign_daily", DAY)
    other = PartitionKey("demo2", "a", "campaign_daily", NEXT)
    for key in (A, B, longer, other):
        fail(ledger, key, run)
    assert set(failures(ledger, customers="a")) == {A, other}
    assert set(failures(ledger, source="demo")) == {A, B, longer}
    assert set(failures(ledger, source="demo", customers=["a", "b"])) == {A, B}
    assert set(failures(ledger, keys=[B, C])) == {B}
    assert set(failures(ledger, since=NEXT)) == {other}
    assert failures(ledger, customers=[]) == failures(ledger, source="absent") == {}


def test_coverage_tells_of_a_failed_extraction(book: Book) -> None:
    """R-CON-3: nobody has attempted what is missing; what failed says in which run, when, and why."""
    ledger = book.ledger
    run, later = ledger.open_run(), ledger.open_run()
    assert book.coverage("campaign_daily") == []
    fail(ledger, A, run)
    seal(ledger, B, run)
    accept(ledger, B, run)
    load(ledger)
    fail(ledger, B, later, error="quota")

    found = {each.key: each for each in book.coverage("campaign_daily", until=DAY)}

    assert {key: each.kind for key, each in found.items()} == {
        A: CoverageKind.FAILED, B: CoverageKind.PUBLISHED, C: CoverageKind.MISSING,
    }  # fmt: skip
    failed = found[A].last_failure
    assert failed is not None
    assert (failed.run_id, failed.stage, failed.error_class, failed.error) == (
        run, Stage.EXTRACT, ErrorClass.TRANSIENT, "no answer",
    )  # fmt: skip
    told = [event for event in ledger.run_store.fetch_events(run) if event.partition == str(A)]
    assert failed.at == told[0].persisted_at
    assert found[A].why == str(failed)
    assert found[B].run_id == run
    assert f"run {later}, failed in extract" in str(found[B].why)
    assert (found[C].why, found[C].last_failure) == ("nobody has attempted it", None)


def test_inspecting_tells_of_a_failed_extraction(book: Book) -> None:
    """It has a row, pending, which says what happened; counts and the limit go by the same rows."""
    ledger = book.ledger
    run = ledger.open_run()
    fail(ledger, A, run)
    accept(ledger, B, run)
    fail(ledger, B, ledger.open_run(), error="quota")
    accept(ledger, C, run)

    def listed(limit: int | None = None, **asked: object) -> list[tuple[PartitionKey, Status, str | None]]:
        rows = StateListing(ledger.reader, Selection(**asked), limit)  # type: ignore[arg-type]
        return [
            (
                each.state.key,
                each.state.status,
                None if each.last_failure is None else each.last_failure.error,
            )
            for each in rows
        ]

    everything = [
        (A, Status.PENDING, "no answer"), (B, Status.SUCCESS, "quota"), (C, Status.SUCCESS, None),
    ]  # fmt: skip
    assert listed() == listed(keys=[A, B, C]) == listed(customers=["a", "b", "c"]) == everything
    assert listed(statuses="success") == everything[1:]
    assert listed(statuses="pending") == everything[:1]
    assert listed(statuses="failed") == []
    limited = StateListing(ledger.reader, Selection(), 2)
    assert len(list(limited)) == 2
    assert limited.total == 3
    shown = [each.to_dict() for each in StateListing(ledger.reader, Selection())]
    assert ["last_failure" in each for each in shown] == [True, True, False]
