"""An error of Google Ads shows where in the query's text it is, as far as that can be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.extract.sources.google_ads_places import place_of

TEXT = """SELECT
  campaign.id,
  campaign.nam,
  campaign.name
FROM campaign
WHERE segments.date = '2026-01-01' AND campaign.status = FOO"""


@pytest.mark.parametrize(
    ("trigger", "message", "line", "column", "marked"),
    [
        ("campaign.nam", "no such field", 3, 3, "campaign.nam"),
        ("", "Unrecognized field in the query: 'campaign.nam'.", 3, 3, "campaign.nam"),
        ("", "Unrecognized field campaign.nam in the query.", 3, 3, "campaign.nam"),
        ("", "Error in query: unexpected input FOO.", 6, 58, "FOO"),
        ("2026-01-01", "bad date", 6, 24, "2026-01-01"),
    ],
)
def test_the_place_is_that_of_what_the_error_names(
    trigger: str, message: str, line: int, column: int, marked: str
) -> None:
    place = place_of(TEXT, trigger, message)
    assert place is not None
    assert (place.line, place.column) == (line, column)
    shown, marks = place.excerpt.splitlines()
    assert shown[marks.index("^") : marks.rindex("^") + 1] == marked
    assert str(place) == f"line {line}, column {column}"


@pytest.mark.parametrize("message", ["", "The query is wrong.", "'customer.id' cannot be selected"])
def test_an_error_that_names_nothing_of_the_text_has_no_place(message: str) -> None:
    assert place_of(TEXT, "", message) is None


@given(text=st.text(), trigger=st.text(), message=st.text())
def test_a_place_lies_in_the_text_whatever_the_server_says(text: str, trigger: str, message: str) -> None:
    place = place_of(text, trigger, message)
    if place is not None:
        assert place.content[place.column - 1 : place.column - 1 + place.length]
        assert place.length >= 1
