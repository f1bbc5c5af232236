"""Days past the horizon of their source, on the command line: left out, refused, explained, confirmed."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

import sealbook
from sealbook.clock import utc_now
from sealbook.errors import Irreplaceable
from sealbook.model import PartitionKey
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.selection import Selection
from sealbook.pipeline.steps import steps_of
from tests.support.books import SETTINGS, changed, write_book
from tests.support.cli import run
from tests.support.loops import light_stages
from tests.support.validation import LATER_RUN, RUN, accept, seal

TODAY = utc_now().date()
OLD = TODAY - timedelta(days=80)
"""More than a month ago, and so past a horizon of one month."""


def key(day: date = OLD) -> PartitionKey:
    return PartitionKey("google_ads", "1234567890", "campaign_daily", day)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A book whose source gives the last month; of an old day it has rows, and an older, empty run."""
    source = {
        **SETTINGS["sources"]["google_ads"],
        "options": {"endpoint": "127.0.0.1:1", "horizon_months": 1},
        "customers": [{"id": "123-456-7890", "first_day": (TODAY - timedelta(days=90)).isoformat()}],
    }
    write_book(tmp_path, changed(SETTINGS, "sources.google_ads", source))
    seal(tmp_path / "raw", key(), [], RUN)
    seal(tmp_path / "raw", key(), [{"campaign_id": 1}], LATER_RUN)
    with sealbook.open(tmp_path) as book:
        book.ledger.contracts.put_in_force(book.queries)
        book.ledger.judge([accept(key(), RUN, 0), accept(key(), LATER_RUN, 1)])
    return tmp_path


def test_a_named_day_is_refused_with_the_reason(folder: Path) -> None:
    for command in (("run",), ("extract",), ("state", "backfill", "--reason", "x", "--dry-run")):
        ran = run(*command, str(key()), cwd=folder)
        assert ran.code == 1, command
        assert "source google_ads gives days from" in ran.said


def test_a_backfill_leaves_them_out_and_says_so(folder: Path) -> None:
    span = ("--since", str(OLD), "--until", str(TODAY - timedelta(days=2)))
    ran = run("state", "backfill", *span, "--reason", "x", "--dry-run", "--format", "json", cwd=folder)
    left_out = ran.json["left_out"]["past_horizon"]
    assert left_out > 45
    assert ran.json["partitions"] == 79 - left_out
    shown = run("state", "backfill", *span, "--reason", "x", "--dry-run", cwd=folder)
    assert f"{left_out} partitions past the horizon of their source" in shown.said + shown.out


def test_it_is_not_fetched_again(folder: Path) -> None:
    ran = run("state", "reprocess", str(key()), "--reason", "x", "--dry-run", cwd=folder)
    assert "gives days from" in ran.said + ran.out
    assert "the only copy" in ran.said + ran.out
    young = key(TODAY - timedelta(days=3))
    with sealbook.open(folder) as book:
        book.ledger.judge([accept(young, LATER_RUN, 1)])
        by_span = book.operator.reprocess(Selection(queries="campaign_daily"), actor="me", reason="x")
        assert ([item.key for item in by_span.items], [each.key for each in by_span.refused]) == (
            [young], [key()],
        )  # fmt: skip
        chosen = Selection(since=young.logical_date)
        assert not book.operator.reprocess(chosen, actor="me", reason="x").refused


def test_explain_says_that_nothing_more_is_to_be_had(folder: Path) -> None:
    """Of a day that is published, that is missing, and that the server refused."""
    missing, refused = key(OLD + timedelta(days=1)), key(OLD + timedelta(days=2))
    with sealbook.open(folder) as book:
        loader = book.pipeline.loader
        for _ in light_stages(book).load(loader.plan(Selection(keys=[key()]))):
            pass
        run_id = book.ledger.open_run()
        failed = PartitionFailed(
            key=refused, run_id=run_id, attempt="1", failed_stage=Stage.EXTRACT,
            error_class=ErrorClass.PAST_HORIZON, error="too old",
        )  # fmt: skip
        with steps_of(book.ledger, Stage.EXTRACT, [run_id], planned=[Selection(keys=[refused])]) as steps:
            steps.record([failed])
    past = "it is past the horizon, as source google_ads gives days from"
    for day in (key(), missing):
        assert past in run("explain", str(day), cwd=folder).out
    assert "What is sealed of it is irreplaceable." in run("explain", str(key()), cwd=folder).out
    assert "irreplaceable" not in run("explain", str(key(TODAY - timedelta(days=3))), cwd=folder).out
    said = run("explain", str(refused), cwd=folder).out
    assert "it is given up" in said
    assert "does not give its day any more" in said
    [stopped] = run("state", "terminal", "list", "--format", "json", cwd=folder).json
    assert (stopped["logical_date"], stopped["stop"]) == (str(refused.logical_date), "past_horizon")


def test_a_simulation_does_not_fetch_them(folder: Path) -> None:
    found = run("control", "simulate", "--days", "1", "--format", "json", cwd=folder).json
    with sealbook.open(folder) as book:
        bound = book.expectations(horizons=True)
        assert found["requests"] <= (TODAY - bound.horizons.first_days["google_ads"]).days + 1


def test_a_round_opens_no_work_for_them(folder: Path) -> None:
    with sealbook.open(folder) as book:
        book.catch_up()
        first = book.horizons().first_days["google_ads"]
        book.loop(stages=book.pipeline).open_round()
        days = {each.key.logical_date for each in book.ledger.reader.schedule.open_work()}
    assert min(days - {OLD}) == first  # the old day itself waits to be loaded


def test_a_rollback_from_rows_to_none_has_to_be_confirmed(folder: Path) -> None:
    rollback = ("state", "rollback", str(key()), "--to", RUN, "--reason", "x")
    for more in ((), ("--dry-run",)):
        ran = run(*rollback, *more, cwd=folder)
        assert ran.code == 1
        assert "is irreplaceable" in ran.said
        assert "would replace 1 row" in ran.said
    assert run(*rollback, "--confirm", "yes", cwd=folder).code == 2
    with sealbook.open(folder) as book:
        assert book.ledger.state(key()).current_run_id == LATER_RUN
        with pytest.raises(Irreplaceable):
            book.rollback(key(), RUN, actor="me", reason="x")
    assert run(*rollback, "--confirm", "irreplaceable", cwd=folder).code == 0
    with sealbook.open(folder) as book:
        assert book.ledger.state(key()).record_count == 0
        book.rollback(key(), LATER_RUN, actor="me", reason="back: nothing is lost")
