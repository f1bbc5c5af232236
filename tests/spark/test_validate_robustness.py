"""What goes wrong on the way to a verdict is no verdict, and never counts twice (R-VER-3, R-VER-4)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import Status
from sealbook.model.selection import Selection
from sealbook.validate import Judged
from sealbook.validate.bins import Binning
from tests.support.gates import Gate
from tests.support.validation import Bench, key, payload_file, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

RUNS = 12
GATED = key("c0")
A_TASK_EACH = Binning(2, bin_bytes=1)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    """Some good partitions, a task for each."""
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        bench = Bench(tmp_path / "raw", ledger, spark, binning=A_TASK_EACH)
        for number in range(RUNS):
            bench.seal(key(f"c{number}"), rows(5))
        yield bench


@pytest.fixture
def gate(bench: Bench) -> Gate:
    return Gate(payload_file(bench.root, GATED))


def attempts(ledger: Ledger) -> list[int]:
    """Return how often each partition was judged."""
    return [len(ledger.attempts(key(f"c{number}"))) for number in range(RUNS)]


def test_a_killed_worker_is_replaced_and_no_attempt_counts_twice(bench: Bench, gate: Gate) -> None:
    """It had read half of a file, of which nothing must come."""
    with ThreadPoolExecutor(1) as pool:
        validation = pool.submit(bench.validate)
        gate.wait_for_reader().kill()
        gate.open()
        outcome = validation.result()

    assert not outcome.not_judged
    assert all(verdict.accepted for verdict in outcome.verdicts.values())
    assert attempts(bench.ledger) == [1] * RUNS


def test_verdicts_are_in_the_ledger_while_the_job_runs(bench: Bench, gate: Gate) -> None:
    """A lost driver loses little."""
    results = chain.from_iterable(bench.validator.run(bench.validator.plan(Selection())))
    early = list(islice(results, RUNS - 1))

    assert all(isinstance(result, Judged) for result in early)
    assert attempts(bench.ledger) == [0] + [1] * (RUNS - 1)
    gate.wait_for_reader()
    gate.pass_on()
    [last] = results
    assert isinstance(last, Judged)
    assert last.verdict.accepted
    assert last.verdict.key == GATED


def test_a_stopped_validation_is_resumed_by_the_next(bench: Bench, gate: Gate) -> None:
    with closing(bench.validator.run(bench.validator.plan(Selection()))) as results:
        next(results)
    judged_by_then = sum(attempts(bench.ledger))
    gate.open()
    outcome = bench.validate()

    assert 0 < judged_by_then < RUNS
    assert len(outcome.verdicts) == RUNS - judged_by_then
    assert attempts(bench.ledger) == [1] * RUNS


def test_what_cannot_be_read_for_a_while_is_judged_later(bench: Bench) -> None:
    """R-VER-4: no attempt is counted, its neighbours are judged, and the next call makes up for it."""
    file = payload_file(bench.root, GATED)
    content = file.read_bytes()
    file.unlink()
    file.mkdir()  # which no one can read as a file, not even root
    outcome = bench.validate()

    assert [place for place, _ in outcome.not_judged] == [GATED]
    assert "the storage failed" in next(iter(outcome.not_judged.values())).reason
    assert bench.ledger.state(GATED).status is Status.PENDING
    assert attempts(bench.ledger) == [0] + [1] * (RUNS - 1)

    file.rmdir()
    file.write_bytes(content)
    outcome = bench.validate()

    assert [place for place, _ in outcome.verdicts] == [GATED]
    assert outcome.verdict(GATED).accepted
    assert attempts(bench.ledger) == [1] * RUNS
