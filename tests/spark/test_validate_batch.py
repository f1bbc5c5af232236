"""Thousands of partitions in one job, with faults at known places (R-VER-1 to R-VER-3)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import Status
from tests.support.faults import Seeded, batch, kinds
from tests.support.validation import Bench, Outcome, ledger_content, payload_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SIZE = 2_000


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Seeded]]:
    """A raw folder, and what was seeded there."""
    root = tmp_path_factory.mktemp("batch") / "raw"
    seeded = list(batch(SIZE, faults=2))
    for each in seeded:
        each.seal(root)
    return root, seeded


@pytest.fixture(scope="module")
def judged(
    spark: SparkSession, raw: tuple[Path, list[Seeded]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Outcome, Ledger]]:
    """What the session of these tests says of the batch, and its ledger."""
    with open_ledger(f"sqlite:///{tmp_path_factory.mktemp('judged')}/book.db") as ledger:
        yield Bench(raw[0], ledger, spark).validate(), ledger


def test_two_thousand_partitions_are_judged_as_they_were_seeded(
    raw: tuple[Path, list[Seeded]], judged: tuple[Outcome, Ledger]
) -> None:
    """Every kind of fault is found, in its lines, and no neighbour of a bad partition is harmed (R-VER-3)."""
    _, seeded = raw
    outcome, ledger = judged
    assert len(kinds()) >= 20

    assert not outcome.not_judged
    found = {
        place: (verdict.accepted, outcome.failed(place)) for (place, _), verdict in outcome.verdicts.items()
    }
    expected = {each.key: (each.is_accepted, each.failed) for each in seeded}
    for each in seeded:
        assert found.pop(each.key) == expected[each.key], each.kind
    assert not found
    counts = ledger.status_counts()
    bad = sum(not each.is_accepted for each in seeded)
    assert counts == {Status.SUCCESS: SIZE - bad, Status.FAILED: bad, Status.PENDING: 0}


@pytest.mark.timeout(600)  # three more Java processes have to start
def test_an_executor_that_is_killed_on_the_way_changes_nothing(
    raw: tuple[Path, list[Seeded]], judged: tuple[Outcome, Ledger], tmp_path: Path
) -> None:
    """The same batch on executors of their own gives the same ledger, attempts and evidence included."""
    root, seeded = raw
    good = [each.key for each in seeded if each.kind == "good"]
    payload = payload_file(root, good[len(good) // 2])
    url = f"sqlite:///{tmp_path}/book.db"
    command = [sys.executable, "-m", "tests.support.validate_on_cluster", str(root), url, str(payload)]
    environment = os.environ | {"SPARK_WORKER_DIR": str(tmp_path / "work")}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stderr
    with open_ledger(url) as ledger:
        assert ledger_content(ledger) == ledger_content(judged[1])
