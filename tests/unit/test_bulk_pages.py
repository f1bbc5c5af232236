"""Rows go to PostgreSQL in statements of bounded size, each exactly once, in their order."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.ledger.db import bulk

MOST_ROWS, MOST_CHARACTERS = 4, 10


@pytest.fixture(autouse=True, scope="module")
def small_statements() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "_ROWS_A_STATEMENT", MOST_ROWS)
        patch.setattr(bulk, "_CHARACTERS_A_STATEMENT", MOST_CHARACTERS)
        yield


@given(st.lists(st.text("x", max_size=12)))
def test_pages_hold_all_rows_within_their_bounds(texts: list[str]) -> None:
    """But for a row that is too large all by itself: only the database can say whether it takes it."""
    pages = list(bulk._pages(texts))
    assert list(chain.from_iterable(pages)) == texts
    for page in pages:
        assert 1 <= len(page) <= MOST_ROWS
        assert len(page) == 1 or sum(map(len, page)) <= MOST_CHARACTERS
    for page, following in pairwise(pages):
        is_full = len(page) == MOST_ROWS or sum(map(len, page)) + len(following[0]) > MOST_CHARACTERS
        assert is_full
