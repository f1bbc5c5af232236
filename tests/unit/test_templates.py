"""Places for a key in a text: the customer, the query, and the day, before, after and in other forms."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.extract.sources.templates import Template
from sealbook.model import PartitionKey

KEY = PartitionKey("shop", "acme", "orders", date(2026, 3, 1))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("/{customer_id}/{query_name}/{logical_date}", "/acme/orders/2026-03-01"),
        ("{logical_date-1}…{logical_date+1}", "2026-02-28…2026-03-02"),
        ("{logical_date:%Y/%m/%d}", "2026/03/01"),
        ("{logical_date+1:%d.%m.%y %j}", "02.03.26 061"),
        ("{logical_date:unix}", "1772323200"),
        ("{{logical_date}} {{{customer_id}}}", "{logical_date} {acme}"),
        ("", ""),
    ],
)
def test_places_are_filled(text: str, filled: str) -> None:
    assert Template(text).fill(KEY) == filled


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{customer}", "{customer}"),
        ("{logical_date:%B}", "{logical_date:%B}"),  # which depends on the language of a machine
        ("{logical_date:}", "{logical_date:}"),
        ("{logical_date+1.5}", "{logical_date+1.5}"),
        ("{}", "{}"),
        ("{customer_id", "{customer_id"),
        ("a}b", "a}b"),
    ],
)
def test_a_place_that_is_none_is_named(text: str, named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Template(text)
    assert repr(named) in str(caught.value)


def test_a_day_that_there_is_not_is_refused() -> None:
    first = PartitionKey("shop", "acme", "orders", date.min)
    with pytest.raises(InvalidInput, match="there is no day -1 from it"):
        Template("{logical_date-1}").fill(first)


@given(st.dates(date(1900, 1, 1), date(2200, 1, 1)), st.integers(-9999, 9999), st.text())
def test_text_of_its_own_stays_and_days_are_counted(day: date, days: int, text: str) -> None:
    own = text.replace("{", "{{").replace("}", "}}")
    key = PartitionKey("shop", "acme", "orders", day)
    template = Template(f"{own}{{logical_date{days:+}}}{own}")
    assert template.fill(key) == f"{text}{day + timedelta(days=days)}{text}"
    assert template.has_day
    assert not Template(own).has_day
