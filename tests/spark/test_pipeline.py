"""A run through the stages, from Python: in one go, in several, stopped and resumed (R-RUN-3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import sealbook
from sealbook import Selection
from sealbook.book import Book
from sealbook.errors import ConfigError, IllegalMove, InvalidInput
from sealbook.extract.extraction import Extraction
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger.schedule.pauses import PauseCause, Scope
from sealbook.model import PartitionKey, RunStatus, StepStatus
from sealbook.model.partition_events import PartitionFailed, Stage, read_fact
from sealbook.model.publication import CoverageKind
from sealbook.raw import RawReader
from sealbook.status.verify import verify_ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

DAYS = Selection(queries="campaign_daily", since=date(2026, 1, 1), until=date(2026, 1, 2))
BAD = PartitionKey("demo", "c2", "campaign_daily", date(2026, 1, 1))
ABSENT = PartitionKey("demo", "c3", "campaign_daily", date(2026, 1, 2))
FAULTS: list[dict[str, Any]] = [
    {"kind": "malformed", "customers": ["c2"], "dates": [BAD.logical_date.isoformat()]},
    {"kind": "quota", "customers": ["c3"], "dates": [ABSENT.logical_date.isoformat()]},
]


def settings(faults: list[dict[str, Any]]) -> dict[str, Any]:
    source = {
        "queries": "demo.yaml",
        "customers": ["c1", "c2", "c3"],
        "options": {"rows": 5, "faults": faults},
    }
    return {"ledger": "sqlite:///book.db", "sources": {"demo": source}, "spark": {"master": "local[2]"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A demo book of three customers, of which one partition is bad and one cannot be fetched."""
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings(FAULTS)))
    return tmp_path


@pytest.fixture
def book(folder: Path, spark: SparkSession) -> Iterator[Book]:
    del spark  # the session that the book finds
    with sealbook.open(folder) as opened:
        yield opened


def run_status(book: Book, run_id: str) -> RunStatus:
    snapshot = book.ledger.run_store.project_snapshot(run_id)
    assert snapshot.inconsistent == ()
    return snapshot.status


def test_the_whole_way_in_one_call(book: Book) -> None:
    """What can be published is; the rest says why; and the log says all of it."""
    outcome = book.run(DAYS)

    assert (outcome.extract.sealed, len(outcome.extract.failures)) == (5, 1)
    assert (outcome.validate.accepted, outcome.validate.rejected) == (4, 1)
    assert outcome.load.published == 4
    assert outcome.status is RunStatus.COMPLETED
    assert run_status(book, outcome.run_id) is RunStatus.COMPLETED
    assert book.table("campaign_daily").num_rows == 4 * 5
    steps = book.ledger.run_store.project_snapshot(outcome.run_id).steps
    assert {name: step.status for name, step in steps.items()} == dict.fromkeys(
        ("extract", "validate", "load"), StepStatus.SUCCESS
    )
    [failure] = [read_fact(each) for each in book.ledger.reader.partition_log.events(ABSENT)]
    assert isinstance(failure, PartitionFailed)
    assert (failure.failed_stage, failure.error_class) == (Stage.EXTRACT, "quota")
    assert list(verify_ledger(book.ledger.reader)) == []
    contracts = book.ledger.reader.contracts
    [in_force] = [each for each in contracts.history("demo") if each.query_name == "campaign_daily"]
    contract = contracts.contract(in_force.hash)
    assert (
        contract == book.settings.sources["demo"].queries["campaign_daily"].contracts[in_force.schema_version]
    )
    assert contract.hash == in_force.hash


@pytest.mark.parametrize(
    ("scope", "pausing"),
    [("source", {Scope("demo")}), ("account", {Scope("demo", "c1"), Scope("demo", "c2")})],
)
def test_a_quota_pauses_its_scope_until_the_time_that_the_source_names(
    folder: Path, spark: SparkSession, scope: str, pausing: set[Scope]
) -> None:
    """R-CTL-7: from a task of Spark into the schedule."""
    del spark  # the session that the book finds
    fault = {"kind": "quota", "customers": ["c1", "c2"], "retry_after": 900, "scope": scope}
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings([fault])))
    with sealbook.open(folder) as book:
        book.run(replace(DAYS, customers=("c1", "c2")))
        pauses = book.ledger.reader.schedule.pauses()
        now = book.ledger.reader.now()
    assert {pause.scope for pause in pauses} == pausing
    assert {pause.cause for pause in pauses} == {PauseCause.QUOTA}
    for pause in pauses:
        assert pause.until is not None
        assert timedelta(seconds=600) < pause.until - now <= timedelta(seconds=900)


def test_what_was_sealed_is_handed_on_without_a_listing(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_: object) -> None:
        raise AssertionError("the raw store was listed")

    monkeypatch.setattr(RawReader, "sealed", listed)
    assert book.run(DAYS).load.published == 4


def test_stage_by_stage_comes_to_the_same(book: Book) -> None:
    """R-RUN-3: whichever calls did the work; a run that is not published yet goes on."""
    extracted = book.extract(DAYS)
    assert run_status(book, extracted.run_id) is RunStatus.RUNNING
    judged = book.validate()
    assert (judged.accepted, judged.rejected) == (4, 1)
    assert run_status(book, extracted.run_id) is RunStatus.RUNNING
    assert book.load().published == 4
    assert run_status(book, extracted.run_id) is RunStatus.COMPLETED
    assert book.validate().accepted == book.load().published == 0


def test_a_run_that_was_stopped_goes_on_where_it_was(book: Book) -> None:
    """Its steps say that it was stopped; nothing is fetched, judged or loaded twice."""
    run_id = book.pipeline.open_run()
    batches = book.iter_run(DAYS, run_id=run_id)
    for batch in batches:
        if batch.stage is Stage.VALIDATE:
            break
    batches.close()
    assert run_status(book, run_id) is RunStatus.RUNNING
    steps = book.ledger.run_store.project_snapshot(run_id).steps
    assert steps["validate"].latest.error == "stopped"

    outcome = book.run(DAYS, run_id=run_id)

    assert outcome.status is RunStatus.COMPLETED
    assert outcome.extract.endings == {"skipped": 5, "failed": 1}
    assert len(book.ledger.attempts(BAD)) == 1
    assert book.table("campaign_daily").num_rows == 4 * 5
    with pytest.raises(IllegalMove, match=run_id):
        book.run(DAYS, run_id=run_id)


def test_a_run_with_nothing_good_in_it_fails(book: Book) -> None:
    """R-RUN-3: it ends at once, in the stage after which nothing is left to do."""
    extracted = book.extract(Selection(keys=[ABSENT]))
    assert run_status(book, extracted.run_id) is RunStatus.FAILED
    outcome = book.run(Selection(keys=[BAD]))
    assert outcome.status is RunStatus.FAILED
    assert outcome.load.published == 0


def test_a_newer_run_ends_an_older_one_that_waits(book: Book) -> None:
    """R-RUN-3: superseded, though no command names the older run any more."""
    older = book.extract(Selection(keys=[PartitionKey("demo", "c1", "campaign_daily", date(2026, 1, 1))]))
    book.validate()
    assert run_status(book, older.run_id) is RunStatus.RUNNING
    book.run(Selection(customers="c1", queries="campaign_daily", since="2026-01-01", until="2026-01-01"))
    assert run_status(book, older.run_id) is RunStatus.COMPLETED


def test_a_rejected_run_is_judged_again_once_its_contract_is_right(spark: SparkSession, folder: Path) -> None:
    """R-VER-6: not its data was wrong; nothing is fetched again."""
    del spark  # the session that the books find
    catalogue = yaml.safe_load(demo_configuration())
    query = catalogue["queries"]["campaign_daily"]
    query["contracts"][query["schema_version"]]["rules"] = [
        {"name": "wrong", "expression": "metrics_clicks < 0"}
    ]
    (folder / "demo.yaml").write_text(yaml.safe_dump(catalogue))
    only = Selection(customers="c1", queries="campaign_daily", since="2026-01-01", until="2026-01-01")
    with sealbook.open(folder) as mistaken:
        assert mistaken.run(only).validate.rejected == 1

    (folder / "demo.yaml").write_text(demo_configuration())
    with sealbook.open(folder) as mended:
        assert mended.validate(only).accepted == 0
        assert mended.validate(only, which="rejected", dry_run=True).accepted == 1
        assert mended.validate(only, which="rejected").accepted == 1
        assert mended.load().published == 1
        assert (
            len({each.hash for each in mended.ledger.reader.contracts.history("demo", "campaign_daily")}) == 2
        )


def test_what_is_asked_for_wrongly_changes_nothing(book: Book) -> None:
    for selection in (Selection(customers="nobody"), Selection(queries="nothing"), Selection(source="none")):
        for act in (book.validate, book.load):
            with pytest.raises(ConfigError, match="is configured"):
                act(selection)
    with pytest.raises(InvalidInput, match="since and until"):
        book.run()
    with pytest.raises(InvalidInput, match="which 'all'"):
        book.validate(which="all")
    assert book.ledger.run_store.list_runs() == []


def test_the_side_that_cannot_write(book: Book, folder: Path) -> None:
    """It reads all there is to read, and has no way to change it."""
    run = book.run(DAYS).run_id
    with sealbook.open(folder, read_only=True) as reader:
        assert reader.table("campaign_daily").equals(book.reader.table("campaign_daily"))
        assert reader.ledger.state(BAD).status == "failed"
        assert reader.ledger.run_store.get_snapshot(run) is not None
        assert [each.kind for each in reader.coverage("campaign_daily")].count(CoverageKind.PUBLISHED) == 4
        for name in ("judge", "requeue", "rollback", "verdicts", "overrides", "runs", "open_run"):
            assert not hasattr(reader.ledger, name)
        for name in ("run", "extract", "validate", "load", "pipeline"):
            assert not hasattr(reader, name)
        assert not hasattr(reader.ledger.pointers, "swap")
        assert not hasattr(reader.raw, "seal")
        assert not hasattr(reader.ledger.run_store, "append_event")


def test_a_run_whose_job_could_not_start_has_failed(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-3: it does not stay RUNNING for ever; the error is that of the start."""

    def no_session(*_: object) -> None:
        raise ConfigError("Spark did not start")

    monkeypatch.setattr(Extraction, "begin", no_session)
    run_id = book.pipeline.open_run()
    with pytest.raises(ConfigError, match="did not start"):
        book.extract(DAYS, run_id=run_id)
    snapshot = book.ledger.run_store.get_snapshot(run_id)
    assert snapshot is not None
    assert (snapshot.status, snapshot.error) == (RunStatus.FAILED, "Spark did not start")
    assert snapshot.steps["extract"].status is StepStatus.FAILED
