"""OpenLineage events follow from the log: each at least once, in order, under one id, on each ledger."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sealbook.book import Book
from sealbook.config import LineageSettings
from sealbook.config.lineage import check_installed
from sealbook.errors import Conflict, MissingExtra, Transient
from sealbook.ledger import open_ledger
from sealbook.model import RunEvent
from sealbook.model.partition_events import Stage
from sealbook.model.scope import Scope
from sealbook.pipeline.lineage import LineageSender
from sealbook.pipeline.lineage.told import uuid_of
from tests.support.ledger import run_id
from tests.support.lineage import break_off, check_event, go_through
from tests.support.published import key, open_book


class Keeper:
    """A receiver that keeps what it takes, and fails when it is to take more than it may."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.most: int | None = None

    def take(self, batch: bytes) -> None:
        if self.most is not None and len(self.taken) >= self.most:
            raise Transient("down")
        self.taken.append(batch)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.taken]


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        yield opened


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


def sender(book: Book, keeper: Keeper) -> LineageSender:
    made = LineageSender.of(
        book.settings, LineageSettings(url="http://unused", namespace="prod"), book.ledger
    )
    return LineageSender(made.ledger, made.events, keeper)


def test_a_run_and_its_steps_are_told_with_what_they_did(book: Book, keeper: Keeper) -> None:
    run = go_through(book.ledger, [key(0), key(1)], bad=[key(2)])
    assert sender(book, keeper).send() == 8
    events = keeper.events
    for event in events:
        check_event(event)
    assert [(each["job"]["name"], each["eventType"]) for each in events] == [
        ("run", "START"),
        ("run.extract", "START"),
        ("run.extract", "COMPLETE"),
        ("run.validate", "START"),
        ("run.validate", "COMPLETE"),
        ("run.load", "START"),
        ("run.load", "COMPLETE"),
        ("run", "COMPLETE"),
    ]
    ids = [each["run"]["runId"] for each in events]
    assert ids[0] == ids[7]
    assert ids[1] == ids[2]
    assert len(set(ids)) == 4
    parents = {
        each["run"]["facets"]["parent"]["run"]["runId"] for each in events if each["job"]["name"] != "run"
    }
    assert parents == {ids[0]}
    assert {each["job"]["namespace"] for each in events} == {"prod"}
    assert ids[0] == str(uuid_of(run))

    extracted, validated, loaded = events[2], events[4], events[6]
    [source] = extracted["inputs"]
    assert (source["namespace"], source["name"]) == ("demo", "campaign_daily")
    [raw] = extracted["outputs"]
    assert (raw["namespace"], raw["name"]) == ("file", "unused/demo/campaign_daily")
    assert statistics(raw) == (30, 300, 3)
    assert {"name": "clicks", "type": "int"} in [
        {name: field[name] for name in ("name", "type")} for field in raw["facets"]["schema"]["fields"]
    ]
    [judged] = validated["inputs"]
    assert validated["outputs"] == []
    assert [
        (each["assertion"], each["success"], each["severity"], each["actual"])
        for each in judged["inputFacets"]["dataQualityAssertions"]["assertions"]
    ] == [("columns", True, "error", "0"), ("clicks_not_negative", False, "error", "3")]
    [table] = loaded["outputs"]
    assert table["name"] == f"{book.settings.warehouse}/demo/campaign_daily"
    assert statistics(table)[0] == 20
    assert [each["name"] for each in loaded["inputs"]] == [raw["name"]]


def statistics(dataset: dict[str, Any]) -> tuple[int, int, int]:
    facet = dataset["outputFacets"]["outputStatistics"]
    return facet["rowCount"], facet["size"], facet["fileCount"]


def test_a_step_that_broke_off_and_runs_that_failed_or_were_stopped_say_why(
    book: Book, keeper: Keeper
) -> None:
    failed = go_through(book.ledger, [], bad=[key(0)])
    left = break_off(book.ledger, key(1))
    book.ledger.runs.cancel_run(left, actor="ann", reason="enough")
    sender(book, keeper).send()
    told = [
        (each["job"]["name"], each["eventType"], each["run"]["facets"]["errorMessage"]["message"])
        for each in keeper.events
        if "errorMessage" in each["run"]["facets"]
    ]
    assert ("run.extract", "FAIL", "the disk is full") in told
    assert [each["eventType"] for each in keeper.events if each["job"]["name"] == "run"] == [
        "START",
        "FAIL",
        "START",
        "ABORT",
    ]
    assert failed < left


def test_what_failed_of_a_step_that_went_on_is_said(book: Book, keeper: Keeper) -> None:
    run = break_off(book.ledger, key(0))
    attempts = book.ledger.runs.open_steps(Stage.EXTRACT, [run])
    book.ledger.runs.close_steps(Stage.EXTRACT, attempts)
    sender(book, keeper).send()
    first, second = (each for each in keeper.events if each["eventType"] in ("FAIL", "COMPLETE"))
    assert first["run"]["runId"] != second["run"]["runId"], "each attempt of a step is a run of its own"
    assert "errorMessage" not in second["run"]["facets"], "what an earlier attempt did is not told again"


def test_what_could_not_be_sent_is_sent_later_in_order_and_nothing_twice(book: Book, keeper: Keeper) -> None:
    go_through(book.ledger, [key(0)])
    whole = Keeper()
    keeper.most = 3
    with pytest.raises(Transient, match="down"):
        sender(book, keeper).send()
    assert len(keeper.taken) == 3
    assert book.ledger.reader.lineage.lag().events > 0
    keeper.most = None
    assert sender(book, keeper).send() == 5
    assert sender(book, keeper).send() == 0
    assert book.ledger.reader.lineage.lag().events == 0
    # From the start it is told again as it was: byte for byte, under the same ids.
    assert sender(book, whole).send(anew=True) == 8
    assert whole.taken == keeper.taken


def test_one_at_a_time_sends(book: Book, keeper: Keeper) -> None:
    with book.ledger.lineage.turn(), pytest.raises(Conflict, match="another is sending lineage"):
        sender(book, keeper).send()
    assert sender(book, keeper).send() == 0


def test_runs_of_another_scope_are_not_told(book: Book, keeper: Keeper) -> None:
    with open_ledger(book.settings.ledger, scope=Scope("other", "team")) as other:
        go_through(other, [key(0)])
        assert sender(book, keeper).send() == 0
        assert book.ledger.reader.lineage.lag().events == 0
        assert other.reader.lineage.lag().events > 0


def test_a_run_of_another_engine_has_an_id_too(book: Book, keeper: Keeper) -> None:
    """Its id is no ULID, and its steps are none of ours."""
    store = book.ledger.run_store
    store.append_events(
        [RunEvent.new("other-1", "RunStarted"), RunEvent.new("other-1", "StepStarted", "compile", 1)]
    )
    assert sender(book, keeper).send() == 1
    check_event(keeper.events[0])
    assert keeper.events[0]["run"]["runId"] == str(uuid_of("other-1"))
    assert uuid_of(run_id(1)) < uuid_of(run_id(2)), "ids are in the order of runs"


def test_without_the_client_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openlineage", None)
    with pytest.raises(MissingExtra) as caught:
        check_installed()
    assert caught.value.remedy == "pip install 'sealbook[lineage]'"
