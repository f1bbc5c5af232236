"""How days are gathered into ranges, each of which is one request."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings, load_settings
from sealbook.errors import ConfigError
from sealbook.extract.checking import check_sources
from sealbook.extract.ranges import Ranges
from sealbook.extract.source import Source
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.model.selection import Selection
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.extraction import demo_keys
from tests.support.ranged import QUERY, RangedSource, changed_on, days


def ranges(source: Source | None = None, most: int | None = None, query: Query = QUERY) -> Ranges:
    settings = SourceSettings("demo", ("c0",), {query.name: query}, {}, days_per_request=most)
    return Ranges(settings, source)


@given(chosen=st.lists(st.sampled_from(demo_keys(2, 12)), unique=True), most=st.integers(1, 5))
def test_ranges_are_all_that_was_chosen_without_a_gap_and_as_few_as_can_be(
    chosen: list[PartitionKey], most: int
) -> None:
    found = ranges(RangedSource(most=most)).gather(chosen)

    assert [key for own in found for key in own] == sorted(chosen)
    for own in found:
        assert own == tuple(days(len(own), own[0].customer_id, own[0].logical_date))
        assert len(own) <= most
    for own, after in pairwise(found):
        next_day = own[-1].logical_date + timedelta(days=1)
        goes_on = (after[0].customer_id, after[0].logical_date) == (own[0].customer_id, next_day)
        assert not goes_on or len(own) == most


def test_a_source_that_takes_no_ranges_is_asked_day_by_day() -> None:
    assert ranges().gather(days(3)) == [(key,) for key in days(3)]


@pytest.mark.parametrize(("told", "sizes"), [(None, [4, 1]), (2, [2, 2, 1]), (1, [1] * 5), (366, [4, 1])])
def test_the_smaller_of_what_is_told_and_what_the_source_takes_holds(
    told: int | None, sizes: list[int]
) -> None:
    assert [len(own) for own in ranges(RangedSource(most=4), told).gather(days(5))] == sizes


def test_a_range_ends_where_the_query_changes() -> None:
    """R-VER-7: each day is fetched by the text that holds then, which may take other ranges."""
    query = changed_on(days(3)[2].logical_date)
    assert [len(own) for own in ranges(RangedSource(), query=query).gather(days(5))] == [1, 1, 3]


@pytest.mark.parametrize("told", [0, 367, "many"])
def test_a_number_of_days_that_cannot_be_is_refused(tmp_path: Path, told: object) -> None:
    document = changed(SETTINGS, "sources.google_ads.days_per_request", told)
    with pytest.raises(ConfigError, match=r"sources\.google_ads\.days_per_request"):
        load_settings(write_book(tmp_path, document))


def test_a_source_that_takes_no_ranges_is_not_told_to(tmp_path: Path) -> None:
    """It is said before anything starts, with the line of the settings."""
    source = {**SETTINGS["sources"]["google_ads"], "options": {}, "days_per_request": 7}
    document = changed(SETTINGS, "sources", {"demo": source})
    settings = load_settings(write_book(tmp_path, document, changed(CATALOGUE, "source", "demo")))
    with pytest.raises(ConfigError, match=r"sources\.demo\.days_per_request.*takes one day.*line") as caught:
        check_sources(settings.sources, [Selection(source="demo")])
    assert caught.value.remedy == "Leave days_per_request out."


def test_gathering_loads_no_client() -> None:
    script = (
        "import sys; from sealbook.config import SourceSettings; from sealbook.extract.ranges import Ranges;"
        "from tests.support.google_ads import google_ads_key, google_ads_query;"
        "query = google_ads_query();"
        "Ranges(SourceSettings('google_ads', (), {query.name: query}, {})).gather([google_ads_key()]);"
        "print(sorted({'grpc', 'google.ads.googleads.client', 'pyspark'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
