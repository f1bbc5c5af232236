"""What is said of an error."""

from __future__ import annotations

import pytest

from sealbook.errors import Transient, first_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("it failed", "it failed"),
        ("\n  it failed: \r\nSELECT 1\n", "it failed:"),
        ("", "Transient"),
        (" \n ", "Transient"),
    ],
)
def test_the_first_line_is_the_first_that_says_anything(text: str, line: str) -> None:
    assert first_line(Transient(text)) == line
