"""Two tables compared: counts, figures and samples agree with what a plain loop finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model.keys import RunId
from sealbook.model.run_diff import RowChangeKind, RowsDiff, RunChoice
from sealbook.rows.comparing import compare_rows

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("clicks", pa.int32()),
        ("cost", pa.decimal128(10, 2)),
        ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)
Row = dict[str, Any]

rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(0, 3),
            "name": st.none() | st.sampled_from(["", "a"]),
            "clicks": st.none() | st.integers(-2, 2),
            "cost": st.none() | st.sampled_from([Decimal("1.10"), Decimal("2.00")]),
            "tags": st.none() | st.dictionaries(st.sampled_from("xy"), st.just([1]) | st.none()),
        }
    ),
    max_size=6,
)


def table(given_rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(given_rows), SCHEMA)


def expected_counts(before: Sequence[Row], after: Sequence[Row], key: Sequence[str]) -> tuple[int, ...]:
    """Match the n-th row of a key with the n-th of the same key, one by one."""
    groups: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, several in enumerate((before, after)):
        for row in several:
            groups[_said(row, key or list(SCHEMA.names))][side].append(row)
    added = removed = changed = unchanged = 0
    for was, now in (pair for group in groups.values() for pair in zip_longest(*group)):
        added += was is None
        removed += now is None
        changed += was is not None and now is not None and was != now
        unchanged += was is not None and was == now
    return added, removed, changed, unchanged


def _said(row: Row, names: Sequence[str]) -> str:
    values = [row[name] for name in names]
    return repr([sorted(each.items()) if isinstance(each, Mapping) else each for each in values])


def counts(found: RowsDiff) -> tuple[int, ...]:
    return found.added, found.removed, found.changed, found.unchanged


@given(before=rows, after=rows, key=st.sampled_from([(), ("id",), ("id", "name")]))
def test_counts_are_those_of_a_plain_loop(before: list[Row], after: list[Row], key: tuple[str, ...]) -> None:
    found = compare_rows(table(before), table(after), key, limit=10)
    assert counts(found) == expected_counts(before, after, key)
    by_kind = {kind: [each for each in found.sample if each.kind is kind] for kind in RowChangeKind}
    assert len(by_kind[RowChangeKind.ADDED]) == found.added
    assert len(by_kind[RowChangeKind.REMOVED]) == found.removed
    assert len(by_kind[RowChangeKind.CHANGED]) == found.changed
    for each in by_kind[RowChangeKind.CHANGED]:
        assert each.before is not None
        assert each.after is not None
        assert all(each.before[name] != each.after[name] for name in each.before)
    for column in found.columns:
        for side, total, nulls in (
            (before, column.total_before, column.nulls_before),
            (after, column.total_after, column.nulls_after),
        ):
            values = [row[column.name] for row in side if row[column.name] is not None]
            assert nulls == len(side) - len(values)
            is_number = column.name in {"id", "clicks", "cost"} - {*key}
            assert total == (sum(values) if values and is_number else None)


def test_a_row_is_shown_with_both_values_and_only_what_changed() -> None:
    one = {"id": 1, "name": "a", "clicks": 5, "cost": None, "tags": {"x": [1]}}
    gone = {**one, "id": 2}
    other = {**one, "clicks": 6, "tags": {"x": [2]}}
    found = compare_rows(table([one, gone]), table([other]), ("id",), limit=10)
    changed, removed = found.sample
    assert (changed.primary_key, changed.before) == ({"id": 1}, {"clicks": 5, "tags": {"x": [1]}})
    assert changed.after == {"clicks": 6, "tags": {"x": [2]}}
    assert (removed.kind, removed.before, removed.after) == (RowChangeKind.REMOVED, gone, None)
    [clicks] = (each for each in found.columns if each.name == "clicks")
    assert (clicks.changed, clicks.total_before, clicks.total_after, clicks.difference) == (1, 10, 6, -4)


def test_the_sample_is_bounded_and_has_the_first_rows() -> None:
    before = [{"id": number, "name": "a"} for number in range(500)]
    after = [{"id": number, "name": "b"} for number in reversed(range(100, 600))]
    found = compare_rows(table(before), table(after), ("id",), limit=2)
    assert counts(found) == (100, 100, 400, 0)
    assert [each.primary_key["id"] for each in found.sample] == [100, 101, 0, 1, 599, 598]
    assert compare_rows(table(before), table(after), ("id",), limit=0).sample == ()


def test_a_total_beyond_64_bits_is_exact() -> None:
    large = pa.table({"id": [1, 2], "clicks": pa.array([2**62, 2**62], pa.int64())})
    found = compare_rows(large, large, ("id",), limit=1)
    assert found.columns[1].total_after == 2**63


A, B, C, D = (RunId(f"{number:026d}") for number in range(1, 5))


@pytest.mark.parametrize(
    ("sealed", "published", "given_runs", "pair"),
    [
        ((A, B), (A,), (), (A, B)),  # a newer run that is not published, against the published
        ((A, B), (A, B), (), (A, B)),  # the published, against the one before
        ((A, B, C), (A, C, A), (), (A, C)),  # rolled back: the newest, against what is read now
        ((A, B), (B,), (), (A, B)),  # the first published, against the one that was rejected
        ((A, B, C), (), (), (B, C)),
        ((A, B, C), (B,), (A,), (A, C)),
        ((A, B, C), (B,), (C,), (C, B)),
        ((A, B, C), (B,), (A, B), (A, B)),
        ((A, B, C), (A, B), (None, B), (A, B)),
        ((A,), (A,), (), None),
        ((), (), (), None),
        ((A,), (A,), (None, A), None),
    ],
)
def test_which_runs_are_compared(
    sealed: tuple[RunId, ...],
    published: tuple[RunId, ...],
    given_runs: tuple[RunId, ...],
    pair: tuple[RunId, RunId] | None,
) -> None:
    assert RunChoice(sealed, published).pair(*given_runs) == pair
