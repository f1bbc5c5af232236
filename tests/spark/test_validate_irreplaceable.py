"""What a source does not give any more is not demoted, or replaced by nothing, unless confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import open_ledger
from sealbook.model import Status
from sealbook.model.contract import Rule
from sealbook.model.horizons import Horizons
from sealbook.model.selection import Selection
from sealbook.validate.plan import Which
from sealbook.validate.validator import Validator
from tests.support.validation import CONTRACT, LATER_RUN, RUN, Bench, key, query, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

OLD, YOUNG = key(day=date(2026, 1, 1)), key(day=date(2026, 2, 1))
EMPTY_IS_FINE = replace(CONTRACT, allow_empty=True)


class BoundBench(Bench):
    """Its source gives days from February on."""

    @property
    def validator(self) -> Validator:
        made = super().validator
        made._horizons = lambda: Horizons({"demo": date(2026, 2, 1)})
        return made


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        bench = BoundBench(tmp_path / "raw", ledger, spark, (query(EMPTY_IS_FINE),))
        for partition in (OLD, YOUNG):
            bench.seal(partition, rows(2, partition.logical_date))
        assert len(bench.validate().verdicts) == 2  # a first acceptance needs no confirmation
        yield bench


def test_an_empty_answer_does_not_take_the_place_of_rows_unless_confirmed(bench: Bench) -> None:
    for partition in (OLD, YOUNG):
        bench.seal(partition, [], LATER_RUN)
    outcome = bench.validate()
    assert [name for name, _ in outcome.verdicts] == [YOUNG]
    [withheld] = outcome.not_judged.values()
    assert withheld.is_irreplaceable
    assert "2 rows" in withheld.reason
    state = bench.ledger.state(OLD)
    assert (state.current_run_id, state.record_count, state.attempt_count) == (RUN, 2, 1)  # R-VER-4

    confirmed = bench.validator.plan(Selection(), irreplaceable=True)
    assert [name for name, _ in bench.judge(confirmed).verdicts] == [OLD]
    assert (bench.ledger.state(OLD).current_run_id, bench.ledger.state(OLD).record_count) == (LATER_RUN, 0)


def test_a_demotion_in_bulk_leaves_it_out_unless_confirmed(bench: Bench) -> None:
    bench.queries = (query(replace(EMPTY_IS_FINE, rules=(Rule("never", "metrics_clicks < 0"),))),)
    for dry_run in (True, False):
        outcome = bench.validate_again(dry_run=dry_run)
        assert [name for name, _ in outcome.verdicts] == [YOUNG]
        [withheld] = outcome.not_judged.values()
        assert "rejecting it would take 2 rows from consumers: never" in withheld.reason
    assert bench.ledger.state(YOUNG).status is Status.FAILED
    assert (bench.ledger.state(OLD).status, bench.ledger.state(OLD).attempt_count) == (Status.SUCCESS, 1)

    bench.judge(bench.validator.plan(Selection(), Which.ACCEPTED, irreplaceable=True))
    assert bench.ledger.state(OLD).status is Status.FAILED
