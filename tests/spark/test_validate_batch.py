"""Thousands of partitions in one job, with faults at known places (R-VER-1 to R-VER-3)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import open_ledger
from sealbook.model import Status
from tests.support.faults import batch, kinds
from tests.support.validation import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SIZE = 2_000


def test_two_thousand_partitions_are_judged_as_they_were_seeded(spark: SparkSession, tmp_path: Path) -> None:
    """Every kind of fault is found, in its lines, and no neighbour of a bad partition is harmed (R-VER-3)."""
    seeded = list(batch(SIZE, faults=2))
    for each in seeded:
        each.seal(tmp_path / "raw")
    assert len(kinds()) >= 20
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        outcome = Bench(tmp_path / "raw", ledger, spark).validate()

        assert not outcome.not_judged
        found = {
            place: (verdict.accepted, outcome.failed(place))
            for (place, _), verdict in outcome.verdicts.items()
        }
        expected = {each.key: (each.is_accepted, each.failed) for each in seeded}
        for each in seeded:
            assert found.pop(each.key) == expected[each.key], each.kind
        assert not found
        counts = ledger.status_counts()
        bad = sum(not each.is_accepted for each in seeded)
        assert counts == {Status.SUCCESS: SIZE - bad, Status.FAILED: bad, Status.PENDING: 0}
