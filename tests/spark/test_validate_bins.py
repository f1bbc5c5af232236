"""A verdict does not depend on how the work was cut up (R-VER-2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract
from sealbook.model.selection import Selection
from sealbook.validate import names
from sealbook.validate.bins import Binning
from tests.support.faults import batch, kinds
from tests.support.validation import RUN, Bench, encoded, key, query, row, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

Verdicts = dict[tuple[PartitionKey, RunId], Verdict]

BINNINGS = st.builds(
    Binning,
    cores=st.integers(1, 9),
    sliced_above=st.sampled_from([0, 700, 5_000, 10**9]),
    slice_bytes=st.sampled_from([500, 2_000, 20_000]),
    bin_bytes=st.sampled_from([1, 100_000, 10**9]),
    block_bytes=st.sampled_from([1, 3_000, 10**9]),
)


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, Verdicts]]:
    """Partitions of all kinds, with the verdicts of the usual binning."""
    folder = tmp_path_factory.mktemp("bins")
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        bench = Bench(folder / "raw", ledger, spark)
        for seeded in batch(len(kinds()), faults=1):
            if seeded.kind != "no payload":  # which is waited for
                seeded.seal(bench.root)
        many = [row(number % 90, metrics_cost_micros=number - 100) for number in range(300)]
        bench.seal(key("many"), [*many, b"oops", {}, row(1, more=1)])
        yield bench, judge(bench, Binning(2), Random(0))


def judge(bench: Bench, binning: Binning, random: Random) -> Verdicts:
    bench.binning = binning
    plan = bench.validator.plan(Selection())
    shuffled = random.sample(plan.candidates, len(plan.candidates))
    outcome = bench.judge(replace(plan, candidates=shuffled, dry_run=True))
    assert not outcome.not_judged
    return outcome.verdicts


@given(BINNINGS, st.randoms(use_true_random=False))
@settings(max_examples=6, derandomize=True)
def test_bins_blocks_slices_and_order_change_no_verdict(
    mixed: tuple[Bench, Verdicts], binning: Binning, random: Random
) -> None:
    bench, usual = mixed

    assert judge(bench, binning, random) == usual


def test_what_is_judged_here_has_every_kind_of_finding(mixed: tuple[Bench, Verdicts]) -> None:
    _, usual = mixed
    verdict = usual[key("many"), RUN]
    failed = {check.name: (check.violations, check.lines) for check in verdict.checks if not check.passed}

    assert failed == {
        names.JSON: (1, (301,)),
        names.REQUIRED: (1, (302,)),
        names.EXTRA_COLUMNS: (1, (303,)),
        names.PRIMARY_KEY: (211, (91, 92, 93, 94, 95)),
        names.DATE_COLUMN: (1, (302,)),
        "cost_not_negative": (101, (1, 2, 3, 4, 5)),
        "few_conversions": (1, (302,)),
    }


def test_keys_repeat_across_slices_just_as_within_one(spark: SparkSession, tmp_path: Path) -> None:
    """Nulls are equal, and so are 0.0 and -0.0, whoever compares."""
    columns = (
        Column("number", ColumnType.DOUBLE),
        Column("day", ColumnType.DATE),
        Column("at", ColumnType.TIMESTAMP),
        Column("flag", ColumnType.BOOLEAN),
    )
    contract = Contract("campaign_daily", "1", columns, primary_key=("number", "day", "at", "flag"))
    lines = [
        {"number": 0.0, "at": "2026-01-01T00:00:00Z"},
        {"number": 1, "day": "2026-01-01", "flag": True},
        {"number": -0.0, "at": "2026-01-01T01:00:00+01:00"},
        {"flag": True, "day": "2026-01-01", "number": 1.0},
        {},
        {"number": None},
    ]
    found, details = [], set()
    for slice_bytes in (30, 10**9):
        with open_ledger("sqlite://") as ledger:
            binning = Binning(2, sliced_above=0, slice_bytes=slice_bytes)
            bench = Bench(tmp_path / str(slice_bytes), ledger, spark, (query(contract),), binning)
            bench.seal(key(), lines)
            bench.binning = None if slice_bytes > 100 else binning
            outcome = bench.validate()
            found.append(outcome.failed(key()))
            details.add(outcome.verdict(key()).error_message)

    assert found == [{names.PRIMARY_KEY: (3, (3, 4, 6))}] * 2
    (detail,) = details
    assert detail == (
        "primary_key: 3 lines have the number, day, at, flag of an earlier line: (-0.0, null, 2026-01-01 "
        "00:00:00, null), (1.0, 2026-01-01, null, true), (null, null, null, null) (lines 3, 4, 6)"
    )


def test_a_sliced_payload_that_differs_from_its_seal_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """The slices are all well, but nobody saw the whole: only its digest counts."""
    payload = encoded(rows(50))
    with open_ledger("sqlite://") as ledger:
        bench = Bench(tmp_path, ledger, spark, binning=Binning(2, sliced_above=0, slice_bytes=2_000))
        bench.seal(key("sha"), payload, says={"payload_sha256": "0" * 64})
        bench.seal(key("bytes"), payload, says={"payload_bytes": len(payload) - 1})
        bench.seal(key("count"), payload, says={"record_count": 51})
        bench.seal(key("seal"), payload, says={"customer_id": "other"})
        bench.seal(key("version"), payload, says={"schema_version": "9"})
        bench.seal(key("good"), payload)
        outcome = bench.validate()

    assert outcome.failed(key("sha")) == {names.PAYLOAD_SHA256: (1, ())}
    assert outcome.failed(key("bytes")) == {names.PAYLOAD_BYTES: (1, ())}
    assert outcome.failed(key("count")) == {names.RECORD_COUNT: (1, ())}
    assert outcome.failed(key("seal")) == {names.METADATA: (1, ())}
    assert outcome.verdict(key("good")).record_count == 50
    assert [place for place, _ in outcome.not_judged] == [key("version")]
