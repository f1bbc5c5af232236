"""A source's type says what it is, and its name whose data it has: a book can have two of one type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sealbook.config import Settings, load_settings
from sealbook.config.catalogue import load_catalogue
from sealbook.errors import ConfigError
from sealbook.extract.checking import check_sources, examine_source
from sealbook.extract.extractor import Extractor
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import PartitionKey
from sealbook.model.keys import parse_date
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from tests.support.books import CATALOGUE, SETTINGS, changed, refused, write_book
from tests.support.runs import new_run_id

DAY = parse_date("day", "2026-01-01")


def settings_of(folder: Path, **sources: dict[str, Any]) -> Settings:
    """Write a book of demo sources, each with its own catalogue."""
    for name, source in sources.items():
        source.update(queries=f"{name}.yaml", customers=["c0"])
        (folder / f"{name}.yaml").write_text(demo_configuration().replace("source: demo", f"source: {name}"))
    book = {"ledger": "sqlite:///book.db", "sources": sources}
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    return load_settings(folder)


def test_the_type_is_the_name_unless_it_is_given(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, demo={}, north={"type": "demo"}, south={"type": "demo"})
    assert [source.type for source in settings.sources.values()] == ["demo", "demo", "demo"]
    assert settings.spark.sources == ("demo",), "executors are sent each type once"


def test_two_sources_of_a_type_have_their_own_options_and_partitions(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        north={"type": "demo", "options": {"rows": 2}},
        south={"type": "demo", "options": {"rows": 3}},
    )
    check_sources(settings.sources, [Selection(source=name) for name in settings.sources])
    counts = {}
    for name, source in settings.sources.items():
        assert examine_source(source, DAY) == []
        extractor = Extractor(new_run_id(), source.type, source.queries, settings.raw, source.options)
        [done] = extractor([(PartitionKey(name, "c0", "campaign_daily", DAY),)])
        counts[name] = done.record_count
    assert counts == {"north": 2, "south": 3}
    sealed = RawStore.open(settings.raw).sealed()
    assert [run.key.source for run in sealed] == ["north", "south"]


def test_a_type_that_there_is_not_is_named_where_it_stands(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, north={"type": "dmeo"})
    with pytest.raises(ConfigError, match=r"sources.north.type: there is no source 'dmeo'.*\(line 4\)"):
        check_sources(settings.sources, [Selection(source="north")])


def test_a_type_that_no_entry_point_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sources.north.type: type 'No Such' is not valid"):
        settings_of(tmp_path, north={"type": "No Such"})


@pytest.mark.parametrize("name", ["ads_north", "google_ads"])
def test_customers_are_those_of_the_type_and_of_the_name(tmp_path: Path, name: str) -> None:
    """R-KEY-2: ten digits for Google Ads, whatever the source is called."""
    source = {**SETTINGS["sources"]["google_ads"], "type": "google_ads", "customers": ["123-456-7890"]}
    catalogue = changed(CATALOGUE, "source", name)
    good = load_settings(write_book(tmp_path, changed(SETTINGS, "sources", {name: source}), catalogue))
    assert good.sources[name].customers == ("1234567890",)
    bad = changed(SETTINGS, "sources", {name: {**source, "customers": ["acme"]}})
    assert f"sources.{name}.customers[0]" in str(refused(write_book(tmp_path, bad, catalogue)))


def test_a_text_that_is_a_mapping_is_kept_as_it_is_written(tmp_path: Path) -> None:
    """What a source reads of it is the source's business; that it changed, the hash says."""
    queries = {}
    for text in ({"path": "/b", "a": 1.50}, {"a": 1.50, "path": "/b"}, "/b"):
        file = tmp_path / "catalogue.yaml"
        file.write_text(
            yaml.safe_dump(changed(CATALOGUE, "queries.campaign_daily.text", text), sort_keys=False)
        )
        query = load_catalogue(file, "google_ads")["campaign_daily"]
        queries[query.text] = query.hash
    assert list(queries) == ['{"path":"/b","a":1.5}', '{"a":1.5,"path":"/b"}', "/b"]
    assert len(set(queries.values())) == 3


@pytest.mark.parametrize(("text", "said"), [(5, "expected text, or a mapping"), ({}, "the text of a query")])
def test_a_text_is_text_or_a_mapping(tmp_path: Path, text: object, said: str) -> None:
    error = refused(write_book(tmp_path, SETTINGS, changed(CATALOGUE, "queries.campaign_daily.text", text)))
    assert said in str(error)
