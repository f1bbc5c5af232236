"""R-KEY-1, R-KEY-2, R-RUN-1: identities, their text forms and their order."""

from __future__ import annotations

import copy
import pickle
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.keys import check_key, normalise_customer_id

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True)
CUSTOMERS = st.from_regex(r"[0-9A-Za-z_]{1,64}", fullmatch=True)
KEYS = st.one_of(
    st.builds(PartitionKey, NAMES.filter(lambda name: name != "google_ads"), CUSTOMERS, NAMES, st.dates()),
    st.builds(
        PartitionKey,
        st.just("google_ads"),
        st.from_regex(r"[0-9]{10}", fullmatch=True),
        NAMES,
        st.dates(),
    ),
)
RUN_IDS = st.from_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True)


def test_text_form() -> None:
    """R-KEY-1: the text form of the rule, word for word."""
    text = "google_ads/1234567890/campaign_daily/2026-01-01"
    key = PartitionKey.parse(text)
    assert key == PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
    assert str(key) == text


@given(KEYS)
def test_every_key_survives_its_text_form(key: PartitionKey) -> None:
    """R-KEY-1: text and key say the same, for every key and every day from year 1 to 9999."""
    assert PartitionKey.parse(str(key)) == key


@given(st.lists(KEYS, min_size=2, max_size=5))
def test_keys_are_ordered_by_their_fields(keys: list[PartitionKey]) -> None:
    """The order in which every writer locks, and in which states are listed."""
    fields = [(key.source, key.customer_id, key.query_name, key.logical_date) for key in sorted(keys)]
    assert fields == sorted(fields)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("123-456-7890", "1234567890"),
        ("1234567890", "1234567890"),
        ("123-4567-890", "123-4567-890"),
        ("123-456-7890 ", "123-456-7890 "),
        ("acme", "acme"),
        ("", ""),
    ],
)
def test_hyphens_are_normalised_at_the_edge_only(text: str, normal: str) -> None:
    """R-KEY-2: one hyphenated form is understood, once; all else is left for the checks to refuse."""
    assert normalise_customer_id(text) == normal


def test_a_hyphen_inside_is_an_error() -> None:
    """R-KEY-2: the error names the field and the value."""
    with pytest.raises(InvalidInput, match="customer_id '123-456-7890'") as refused:
        PartitionKey("google_ads", "123-456-7890", "campaign_daily", date(2026, 1, 1))
    assert (refused.value.field, refused.value.value) == ("customer_id", "123-456-7890")


def test_the_text_form_is_an_edge() -> None:
    """R-KEY-2: people type hyphens; the key has none."""
    key = PartitionKey.parse("google_ads/123-456-7890/campaign_daily/2026-01-01")
    assert key.customer_id == "1234567890"
    assert PartitionKey.parse(str(key)) == key


def test_other_sources_have_other_customers() -> None:
    """R-KEY-2: ten digits are google_ads' rule only."""
    assert PartitionKey("demo", "Acme_7", "q", date(2026, 1, 1)).customer_id == "Acme_7"


@given(RUN_IDS, RUN_IDS)
def test_run_ids_are_text_in_text_order(first: str, second: str) -> None:
    """R-RUN-1: a run id is its text, and sorts as it."""
    assert RunId(first) == first
    assert (RunId(first) < RunId(second)) == (first < second)


@given(KEYS, RUN_IDS)
def test_identities_travel_between_processes(key: PartitionKey, run: str) -> None:
    """Workers get them pickled."""
    assert pickle.loads(pickle.dumps((key, RunId(run)))) == (key, run)
    assert copy.deepcopy(key) == key
    assert isinstance(pickle.loads(pickle.dumps(RunId(run))), RunId)


@pytest.mark.parametrize("value", ["google_ads/1234567890/q/2026-01-01", None, (), 1])
def test_only_a_key_is_a_key(value: object) -> None:
    """Above all its text form is none."""
    with pytest.raises(InvalidInput, match=r"^key "):
        check_key(value)
