"""R-WH-2, R-WH-7: the values of a publication refuse what no correct caller would pass."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Artifact, Staged, SwapResult
from sealbook.model.publication import check_cut_name

KEY = PartitionKey("demo", "a", "clicks", date(2026, 1, 1))
RUN = "0" * 26
GOOD: dict[str, Any] = {
    "artifact": Artifact(KEY, RunId(RUN), "1"),
    "record_count": 0,
    "bytes": 0,
    "digest": "0123456789abcdef" * 4,
    "location": "demo/clicks",
    "parts": 1,
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("artifact", KEY),
        ("record_count", -1),
        ("record_count", 1.0),
        ("bytes", True),
        ("digest", "0123456789ABCDEF" * 4),
        ("digest", "0" * 63),
        ("digest", None),
        ("location", ""),
        ("location", "a\0b"),
        ("parts", 0),
        ("format", 3),
        ("copy", -1),
        ("part_digests", ("0" * 64,)),
        ("part_digests", ("0", "1")),
    ],
)
def test_a_staged_artifact_is_checked_field_by_field(field: str, value: object) -> None:
    """What is wrong is named; it would otherwise be found by a database, or by nobody."""
    assert Staged(**GOOD).key == KEY
    with pytest.raises(InvalidInput, match=field):
        Staged(**GOOD | {field: value})


def test_an_artifact_is_checked() -> None:
    """Its text names partition, run and schema_version."""
    assert str(Artifact(KEY, RunId(RUN), "1")) == f"demo/a/clicks/2026-01-01 run {RUN} (schema_version 1)"
    wrongs: list[Any] = [(str(KEY), RUN, "1"), (KEY, "x", "1"), (KEY, RUN, ""), (KEY, RUN, None)]
    for wrong in wrongs:
        with pytest.raises(InvalidInput):
            Artifact(*wrong)


def test_skipped_is_all_that_was_not_published() -> None:
    """A load's summary counts it."""
    other = PartitionKey("demo", "b", "clicks", date(2026, 1, 1))
    assert SwapResult(1, loaded=(KEY,), moved=(other,), removed=(KEY,)).skipped == (other, KEY)
    assert SwapResult(1, unchanged=(KEY,)).skipped == ()


@pytest.mark.parametrize("name", ["", "V1", "v1", "v42", "1st", "a b", "a/b", "a" * 64, None, 1])
def test_cut_names_that_are_refused(name: object) -> None:
    """R-WH-7: nothing that could be the token of a cut without a name."""
    with pytest.raises(InvalidInput, match="cut name"):
        check_cut_name(name)


@pytest.mark.parametrize("name", ["a", "v", "v1a", "month-end_2026-01", "a" * 63])
def test_cut_names_that_are_good(name: str) -> None:
    """R-WH-7."""
    check_cut_name(name)
