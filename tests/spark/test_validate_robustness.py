"""What goes wrong on the way to a verdict is no verdict, and never counts twice (R-VER-3, R-VER-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import RDD

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import RunId, Status
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.rows.line_check import CheckedLine, LineCheck
from sealbook.rows.problems import Defect
from sealbook.rows.units import Unit
from sealbook.spark.raw_rows import Reader
from sealbook.validate import judging
from sealbook.validate.bins import Binning
from sealbook.validate.findings import Content, Evidence, Report
from sealbook.validate.inspection import FINDING, ORDINAL, Inspection
from sealbook.validate.results import Judged, NotJudged
from tests.support.deadly import DeadlyRaw
from tests.support.gates import Gate
from tests.support.validation import CONTRACT, RUN, Bench, key, new_validator, payload_file, rows

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


def test_a_run_that_kills_its_worker_is_found_and_its_neighbours_are_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    """R-VER-3, R-VER-4: whatever a run does to our processes; here all of them are in one task at first."""
    good, bad = [key(f"c{number}") for number in range(7)], [key("breaks"), key("kills")]
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        bench = Bench(tmp_path / "raw", ledger, spark)
        for each in (*good, *bad):
            bench.seal(each, rows(5))
        raw = DeadlyRaw.open(str(bench.root))
        validator = new_validator(ledger, raw, bench.queries, lambda: spark)
        results = list(chain.from_iterable(validator.run(validator.plan(Selection()))))

        judged = [each.verdict for each in results if isinstance(each, Judged)]
        assert sorted(verdict.key for verdict in judged) == good
        assert all(verdict.accepted for verdict in judged)
        reasons = {each.key: each.reason for each in results if isinstance(each, NotJudged)}
        assert sorted(reasons) == bad
        assert "ZeroDivisionError: nobody foresaw this (read, line " in reasons[key("breaks")]
        assert "Spark gave up: " in reasons[key("kills")]
        assert "Python worker exited unexpectedly (crashed)" in reasons[key("kills")]
        assert [ledger.state(each).attempt_count for each in (*good, *bad)] == [1] * 7 + [0] * 2


def test_a_search_for_the_run_that_kills_is_given_up_when_all_seem_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is then no run that does it: the number of jobs is bounded, and nothing is said of any run."""
    monkeypatch.setattr(judging, "_MOST_FAILED_JOBS", 3)
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        bench = Bench(tmp_path / "raw", ledger, spark)
        for number in range(8):
            bench.seal(key(f"kills{number}"), rows(1))
        raw = DeadlyRaw.open(str(bench.root))
        validator = new_validator(ledger, raw, bench.queries, lambda: spark)
        results = list(chain.from_iterable(validator.run(validator.plan(Selection()))))

        assert sorted(each.key for each in results if isinstance(each, NotJudged)) == [
            key(f"kills{number}") for number in range(8)
        ]
        assert not list(ledger.states())


def test_whatever_a_line_does_to_our_code_its_neighbours_are_judged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-VER-3: what fails for a block is done run by run, and the one that fails alone is set aside."""
    lines: list[object] = [*rows(3), b'{"boom": 1, "segments_date": 5}']
    units = [
        Unit(ordinal, bench.seal(key(f"line{ordinal}"), lines if ordinal == 1 else rows(3)), RunId(RUN))
        for ordinal in range(3)
    ]
    check = LineCheck.check

    def fail(self: LineCheck, line: bytes) -> CheckedLine:
        if b"boom" in line:
            raise ZeroDivisionError("nobody foresaw this")
        return check(self, line)

    monkeypatch.setattr(LineCheck, "check", fail)
    reader = Reader(RawStore.open(bench.root), CONTRACT, Inspection(CONTRACT, ("metrics_clicks",)), tries=1)
    found: dict[int, Evidence] = {}
    given: Counter[int] = Counter()
    for batch in reader.read(units):
        for row in batch.to_pylist():
            if row[FINDING] is None:
                given[row[ORDINAL]] += 1
            else:
                found.setdefault(row[ORDINAL], Evidence()).add(Report(row[ORDINAL], [row[FINDING]]))

    assert given == {0: 3, 2: 3}
    assert [type(found[ordinal].finding()) for ordinal in range(3)] == [Content, Defect, Content]


def test_a_job_that_fails_outside_spark_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-VER-4: such as a contract that cannot be sent to workers."""

    def fail(*_: object) -> None:
        raise RuntimeError("cannot be sent")

    monkeypatch.setattr(RDD, "foreachPartition", fail)
    outcome = bench.validate()
    assert not outcome.verdicts
    assert {each.reason for each in outcome.not_judged.values()} == {"Spark gave up: cannot be sent"}
