"""What evidence shows of a primary key: short, printable, and the same whoever has found it."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from sealbook.validate.key_text import key_text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["a02000"], "a02000"),
        ([7, "MOBILE"], "(7, MOBILE)"),
        ([None], "null"),
        ([True, date(2026, 1, 2)], "(true, 2026-01-02)"),
        ([datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)], "2026-01-02 03:04:05"),
        ([datetime(2026, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC)], "2026-01-02 03:04:05.12"),
        ([datetime(1, 1, 2, 3, 4, 5, tzinfo=UTC)], "0001-01-02 03:04:05"),
        (["\x1b[2Jgone\n"], r"\x1b[2Jgone\n"),
        (["x" * 41], "x" * 39 + "…"),
        (["x" * 40, 1], f"({'x' * 39}…)"),
    ],
)
def test_a_key_is_short_and_printable(values: list[object], text: str) -> None:
    assert key_text(values) == text
