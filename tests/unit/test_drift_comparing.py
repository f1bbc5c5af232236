"""How a run that is being staged is compared with the published one, and what is said if it cannot be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from sealbook.ledger import open_ledger
from sealbook.load.drifting import DriftComparer, Replaced
from sealbook.model.contract import Contract
from sealbook.model.drift import Drift
from sealbook.warehouse.part_files import PartFiles
from tests.support.ledger import accept, run_id
from tests.support.published import CONTRACTS, key, rows_of, write_table

CONTRACT = replace(CONTRACTS["1"], primary_key=("id",))
AGE = timedelta(days=3)
Compare = Callable[..., Drift]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Publish rows, and compare others with them."""

    def compared(
        before: pa.Table,
        after: pa.Table | None,
        contract: Contract = CONTRACT,
        *,
        parts: int = 1,
        is_gone: bool = False,
    ) -> Drift:
        with open_ledger("sqlite://") as ledger:
            ledger.judge([accept(key(), 1, records=before.num_rows)])
            ledger.pointers.swap([write_table(tmp_path, key(), 1, before, parts=parts)])
            [stored] = ledger.pointers.stored_artifacts()
        if is_gone:
            shutil.rmtree(tmp_path / stored.location)
        return DriftComparer(PartFiles(str(tmp_path)))(contract, Replaced(stored, AGE), after)

    return compared


def table(rows: int, seed: int = 0) -> pa.Table:
    """Return rows of the contract; clicks are those of the seed."""
    return rows_of(CONTRACT, rows, seed)


def test_the_same_rows_have_no_drift(compare: Compare) -> None:
    assert compare(table(5), table(5)) == Drift(run_id(1), AGE, rows=5)


def test_rows_are_matched_by_the_primary_key(compare: Compare) -> None:
    found = compare(table(10, seed=4), table(12, seed=5).slice(1))
    assert (found.rows, found.added, found.removed, found.changed, found.problem) == (10, 2, 1, 9, None)
    assert found.totals["clicks"] == (40, 55)
    assert found.totals["share"] == (11.25, 16.5)
    assert found.change == pytest.approx(5.25 / 11.25)


def test_an_empty_day_that_gets_rows_is_wholly_another(compare: Compare) -> None:
    assert compare(table(0), table(3)).change == 1.0


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("version", "schema_version 1 was replaced by 2"),
        ("parts", "the artifact that it replaces is too large"),
        ("columns", "they have no column in common"),
        ("file", "is gone"),
    ],
)
def test_what_cannot_be_compared_says_why(compare: Compare, what: str, problem: str) -> None:
    renamed = table(3).rename_columns([f"{name}_2" for name in table(3).column_names])
    found = compare(
        table(3),
        renamed if what == "columns" else table(3),
        replace(CONTRACT, schema_version="2") if what == "version" else CONTRACT,
        parts=2 if what == "parts" else 1,
        is_gone=what == "file",
    )
    assert (found.from_run_id, found.age, found.rows) == (run_id(1), AGE, 0)
    assert problem in str(found.problem)


def test_a_column_whose_type_is_another_is_left_out(compare: Compare) -> None:
    other = table(3).set_column(1, "clicks", pa.array(["a", "b", "c"]))
    found = compare(table(3, seed=7), other)
    assert (found.changed, found.problem) == (0, None)
    assert "clicks" not in found.totals


def test_our_own_failure_does_not_fail_the_load(compare: Compare) -> None:
    found = compare(table(3), None)
    assert found.problem is not None
    assert "Sealbook itself fails on it" in found.problem
