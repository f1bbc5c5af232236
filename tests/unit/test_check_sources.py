"""A source that could fetch nothing is refused before anything starts, once, with the place to mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

import sealbook
from sealbook.config import load_settings
from sealbook.errors import ConfigError, Permanent, Transient
from sealbook.extract import checking
from sealbook.extract.extraction import Extraction
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.source import BadOption, load_source, read_options
from sealbook.extract.sources.google_ads_ends import ENDS
from sealbook.model.contract import Query
from sealbook.model.selection import Selection
from tests.support.books import CATALOGUE, REMOVED, SETTINGS, changed, write_book

DAY = "2026-01-01"
GOOD: dict[str, object] = {"endpoint": "127.0.0.1:1"}


def extraction(folder: Path, options: object = GOOD, catalogue: object = CATALOGUE) -> Extraction:
    settings = load_settings(
        write_book(folder, changed(SETTINGS, "sources.google_ads.options", options), catalogue)
    )
    return Extraction(settings.sources, settings.raw, lambda: pytest.fail("Spark was started"))


def refused(extraction: Extraction, **chosen: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        extraction.plan(Selection(since=DAY, until=DAY, **chosen))
    return caught.value


class Named:
    """A source that does what a test says when it is checked."""

    raises: ClassVar[list[Exception]] = []
    asked: ClassVar[list[list[str]]] = []

    @classmethod
    def from_options(cls, _options: Mapping[str, object]) -> Named:
        return cls()

    def check(self, queries: Sequence[Query]) -> None:
        self.asked.append([query.name for query in queries])
        if self.raises:
            raise self.raises.pop(0)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> type[Named]:
    monkeypatch.setattr(checking, "load_source", lambda _name, options: Named.from_options(options))
    Named.raises, Named.asked = [], []
    return Named


def test_a_source_that_is_in_order_is_planned(tmp_path: Path) -> None:
    assert len(extraction(tmp_path).plan(Selection(since=DAY, until=DAY))) == 2


def test_an_unknown_option_is_named_with_its_line_and_the_known_ones(tmp_path: Path) -> None:
    error = refused(extraction(tmp_path, {"endpoint": "h:1", "page_size": 5}))
    assert "sealbook.yaml: sources.google_ads.options.page_size" in str(error)
    assert "there is no such field (line 12)" in str(error)
    assert error.remedy == (
        "Its options are credentials_file, login_customer_id, timeout_seconds, horizon_months, endpoint."
    )


def test_a_query_that_no_day_goes_into_is_named_with_its_line(tmp_path: Path) -> None:
    catalogue = changed(CATALOGUE, "queries.campaign_daily.text", "SELECT campaign.id FROM campaign")
    error = refused(extraction(tmp_path, catalogue=catalogue))
    assert "google_apis.yaml: queries.campaign_daily.text" in str(error)
    assert "(line 5)" in str(error)


def test_only_the_queries_that_are_chosen_are_checked(tmp_path: Path, named: type[Named]) -> None:
    bad = {**CATALOGUE["queries"]["campaign_daily"], "text": "SELECT campaign.id FROM campaign"}
    catalogue = changed(CATALOGUE, "queries.other_daily", bad)
    extraction(tmp_path, catalogue=catalogue).plan(Selection(since=DAY, until=DAY, queries="campaign_daily"))
    assert named.asked == [["campaign_daily"]]


def test_an_api_version_that_the_client_has_not_is_refused(tmp_path: Path) -> None:
    error = refused(extraction(tmp_path, catalogue=changed(CATALOGUE, "api_version", "v1")))
    assert "google_apis.yaml: api_version: api_version 'v1' of query campaign_daily: the installed" in str(
        error
    )
    assert "(line 2)" in str(error)


def test_a_query_in_no_api_version_is_named_with_its_line_and_the_versions_there_are(tmp_path: Path) -> None:
    error = refused(extraction(tmp_path, catalogue=changed(CATALOGUE, "api_version", REMOVED)))
    assert "google_apis.yaml: queries.campaign_daily: query campaign_daily is asked in no" in str(error)
    assert "client has v23, v24, v25, v26 (line 3)" in str(error)
    assert error.remedy == "Write `api_version: v26` at the top of its catalogue."


def test_what_a_source_forewarns_of_is_logged_once_when_a_plan_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not for each partition; the level rises as the end comes near."""
    for days, level in ((100, None), (60, "WARNING"), (20, "ERROR"), (3, "CRITICAL")):
        now = datetime.combine(ENDS["v26"].day, time(), UTC) - timedelta(days=days)
        monkeypatch.setattr(checking, "utc_now", lambda now=now: now)
        caplog.clear()
        assert len(extraction(tmp_path).plan(Selection(since=DAY, until="2026-01-31"))) == 62
        said = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert [each for each, _ in said] == ([] if level is None else [level])
        assert all("API v26 ends in" in text and f"in {days} days" in text for _, text in said)


def test_a_loop_says_it_once_when_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.combine(ENDS["v26"].day, time(), UTC) - timedelta(days=5)
    monkeypatch.setattr(checking, "utc_now", lambda: now)
    write_book(tmp_path, changed(SETTINGS, "sources.google_ads.options", GOOD))
    with sealbook.open(tmp_path) as book:
        loop = book.loop()
        for _ in range(3):
            loop.open_round()
    [record] = caplog.records
    assert (record.levelname, "in 5 days" in record.getMessage()) == ("CRITICAL", True)


def test_a_credentials_file_is_relative_to_the_book(tmp_path: Path) -> None:
    error = refused(extraction(tmp_path, {"credentials_file": "secrets/google-ads.yaml"}))
    assert f"there are no Google Ads credentials at {tmp_path}/secrets/google-ads.yaml" in str(error)
    assert "credentials_file" in str(error.remedy)


def test_whatever_a_source_raises_is_one_error_that_names_it(tmp_path: Path, named: type[Named]) -> None:
    for raised, said in (
        (Permanent("the key was revoked", remedy="Get another."), "source google_ads: the key was revoked"),
        (KeyError("token"), "source google_ads: KeyError: 'token'"),
    ):
        named.raises = [raised]
        error = refused(extraction(tmp_path))
        assert str(error) == said
        assert error.remedy == getattr(raised, "remedy", None)


def test_what_may_pass_is_tried_again_and_stays_what_it_is(
    tmp_path: Path, named: type[Named], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_RETRY", RetryPolicy(tries=3, base_seconds=0))
    named.raises = [Transient("busy"), Transient("busy")]
    extraction(tmp_path).plan(Selection(since=DAY, until=DAY))
    named.raises = [Transient("busy") for _ in range(3)]
    with pytest.raises(Transient, match="busy"):
        extraction(tmp_path).plan(Selection(since=DAY, until=DAY))


def test_a_source_without_a_check_is_taken_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "load_source", lambda _name, _options: object())
    assert len(extraction(tmp_path).plan(Selection(since=DAY, until=DAY))) == 2


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: Path


def test_a_path_among_options_is_text(tmp_path: Path) -> None:
    for value in (5, "", None):
        with pytest.raises(BadOption, match="options of source x: folder: expected the path") as caught:
            read_options("x", Places, {"folder": value})
        assert caught.value.path == ("folder",)
    assert read_options("x", Places, {"folder": str(tmp_path)}).folder == tmp_path
    assert read_options("x", Places, {"folder": "~/there"}).folder == Path.home() / "there"


def test_a_bad_option_deep_inside_is_named_by_its_path() -> None:
    with pytest.raises(BadOption, match=r"options of source demo: faults\[0\].colour: there is no such"):
        load_source("demo", {"faults": [{"kind": "slow", "colour": "red"}]})
