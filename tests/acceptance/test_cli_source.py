"""`sealbook source try`: what a source answers, and a contract for it, with nothing sealed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import sealbook
from sealbook.config.catalogue import load_catalogue
from sealbook.errors import InvalidInput
from sealbook.extract.sources.demo import demo_configuration
from tests.support.books import CATALOGUE, REMOVED, SETTINGS, changed, write_book
from tests.support.cli import run, run_process
from tests.support.google_ads import CUSTOMER_ID, DAY, Batch, Failure, GoogleAdsServer

TRY = ("source", "try", "--customer", "123-456-7890", "--date", "2026-01-01")
PATHS = ["campaign.id", "segments.date", "metrics.cost_micros", "ad_group_ad.ad.final_urls"]
ROWS = [
    {
        "campaign": {"id": number},
        "segments": {"date": "2026-01-01"},
        "metrics": {"cost_micros": 10 * number},
        "ad_group_ad": {"ad": {"final_urls": ["https://a.example"]}},
    }
    for number in range(25)
]


@pytest.fixture
def server() -> Iterator[GoogleAdsServer]:
    with GoogleAdsServer(default=[Batch(PATHS, ROWS)]) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: GoogleAdsServer) -> Path:
    options = {"endpoint": server.endpoint}
    write_book(tmp_path, changed(SETTINGS, "sources.google_ads.options", options))
    return tmp_path


def test_the_first_rows_and_a_contract_that_holds_for_all_are_shown(
    folder: Path, server: GoogleAdsServer
) -> None:
    """R-KEY-2 for the customer; the contract can be pasted into the catalogue, and nothing is written."""
    before = sorted(folder.rglob("*"))
    ran = run(*TRY, "campaign_daily", "--rows", "2", cwd=folder)
    assert ran.code == 0
    rows, _, proposed = ran.out.partition("\n\n")
    assert rows.splitlines()[0].startswith('{"campaign_id":0,"segments_date":"2026-01-01"')
    assert len(rows.splitlines()) == 2
    assert "The first 2 rows" in ran.said
    assert "Nothing was sealed" in ran.said
    assert "# Proposed from 25 rows" in proposed
    contract = yaml.safe_load(proposed)["2"]  # the query has a version 1
    assert contract["columns"]["metrics_cost_micros"] == {"type": "bigint", "required": True}
    assert contract["columns"]["ad_group_ad_ad_final_urls"]["type"] == "array<string>"
    assert (contract["primary_key"], contract["date_column"]) == (["campaign_id"], "segments_date")
    assert sorted(folder.rglob("*")) == before
    assert [request.customer_id for request in server.requests] == [CUSTOMER_ID]
    pasted = changed(CATALOGUE, "queries.campaign_daily.contracts.2", contract)
    write_book(folder, catalogue=pasted)
    assert load_catalogue(folder / "config" / "google_apis.yaml", "google_ads")


def test_json_has_the_rows_as_objects(folder: Path) -> None:
    found = run(*TRY, "campaign_daily", "--rows", "30", "--format", "json", cwd=folder).json
    assert (found["query_name"], found["logical_date"], found["api_version"]) == (
        "campaign_daily", "2026-01-01", "v26",
    )  # fmt: skip
    assert found["is_whole"]
    assert [row["campaign_id"] for row in found["rows"]] == list(range(25))
    assert found["contract"]["row_count"]["max"] == 50
    assert not run(*TRY, "campaign_daily", "--format", "json", cwd=folder).json["is_whole"]


def test_of_a_large_answer_only_its_beginning_is_taken(folder: Path, server: GoogleAdsServer) -> None:
    """How many rows there are is not known then, so none are promised."""
    large = Batch(["campaign.id"], [{"campaign": {"id": number}} for number in range(1_001)])
    server.reply(CUSTOMER_ID, [large, large])
    found = run(*TRY, "campaign_daily", "--rows", "1000", "--format", "json", cwd=folder).json
    assert (len(found["rows"]), found["is_whole"]) == (1_000, False)
    assert (found["contract"]["row_count"]["min"], found["contract"]["row_count"]["max"]) == (None, None)


@pytest.mark.parametrize("by", ["text", "file", "stdin"])
def test_a_text_that_is_in_no_catalogue_can_be_tried(
    folder: Path, server: GoogleAdsServer, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}' LIMIT 3"
    (folder / "new.gaql").write_text(text)
    with (folder / "new.gaql").open() as opened:
        monkeypatch.setattr("sys.stdin", opened)
        given = {"text": ("--text", text), "file": ("--file", "new.gaql"), "stdin": ("--file", "-")}[by]
        ran = run(*TRY, *given, "--format", "json", cwd=folder)
    assert (ran.code, ran.json["query_name"], ran.json["contract"]["schema_version"]) == (0, "new_query", "1")
    assert server.requests[0].query == text.replace("{logical_date}", "2026-01-01")


def test_a_query_that_is_refused_shows_where(folder: Path, server: GoogleAdsServer) -> None:
    wrong = {"error_code": {"query_error": "UNRECOGNIZED_FIELD"}, "message": "No field 'campaign.nam'."}
    server.reply(CUSTOMER_ID, [Failure("INVALID_ARGUMENT", [wrong])])
    text = "SELECT\n  campaign.nam\nFROM campaign\nWHERE segments.date = '{logical_date}'"
    ran = run(*TRY, "--text", text, cwd=folder)
    assert ran.code == 1
    assert "line 2, column 3" in ran.said
    assert "2 |   campaign.nam\n      ^^^^^^^^^^^^\n" in ran.err
    said = run_process(*TRY, "--text", text, cwd=folder, env={"SEALBOOK_LOG": "json"}).err
    assert '"excerpt":"2 |   campaign.nam\\n      ^^^^^^^^^^^^"' in said


def test_no_rows_are_no_contract(folder: Path, server: GoogleAdsServer) -> None:
    server.reply(CUSTOMER_ID, [])
    ran = run(*TRY, "campaign_daily", cwd=folder)
    assert (ran.code, ran.out) == (0, "")
    assert "has no rows" in ran.said
    assert run(*TRY, "campaign_daily", "--format", "json", cwd=folder).json["contract"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "which query to try"),
        (("nonsense",), "no query nonsense is configured"),
        (("campaign_daily", "--text", "x", "--file", "y"), "a text and a file"),
        (("--file", "nowhere.gaql"), "nowhere.gaql"),
        (("--text", "SELECT x"), "does not say where the day goes"),
        (("--text", "x '{logical_date}'", "--source", "demo"), "one of google_ads"),
    ],
    ids=str,
)
def test_what_cannot_be_tried_is_refused(
    folder: Path, server: GoogleAdsServer, given: tuple[str, ...], said: str
) -> None:
    ran = run(*TRY, *given, cwd=folder)
    assert ran.code == 2
    assert said in ran.said
    assert server.requests == []


def test_a_query_is_tried_in_the_api_version_of_its_catalogue(folder: Path) -> None:
    options = yaml.safe_load((folder / "sealbook.yaml").read_text())
    write_book(folder, options, changed(CATALOGUE, "api_version", REMOVED))
    ran = run(*TRY, "--text", "x = '{logical_date}'", cwd=folder)
    assert ran.code == 2
    assert "no api_version" in ran.said


def test_programs_can_try_too(folder: Path) -> None:
    with sealbook.open(folder) as book:
        tried = book.try_query("campaign_daily", CUSTOMER_ID, DAY, rows=1)
        assert tried.proposal is not None
        assert (len(tried.lines), tried.proposal.rows, tried.is_whole) == (1, 25, False)
        with pytest.raises(InvalidInput, match="ten digits"):
            book.try_query("campaign_daily", "1", DAY)
    assert not (folder / "sealbook.db").exists()


def test_any_source_can_be_tried(tmp_path: Path) -> None:
    settings = {"ledger": "sqlite:///b.db", "sources": {"demo": {"queries": "q.yaml", "customers": ["1001"]}}}
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "q.yaml").write_text(demo_configuration())
    ran = run("source", "try", "campaign_daily", "--customer", "1001", "--date", "2026-01-05", cwd=tmp_path)
    assert ran.code == 0
    assert "date_column: segments_date" in ran.out
