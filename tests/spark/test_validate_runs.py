"""From sealed runs to states: versions, several runs of a partition, judging again, and rehearsals."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.errors import ConfigError
from sealbook.ledger import open_ledger
from sealbook.model import Outcome, PartitionKey, Status
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, RowCount, Rule
from sealbook.validate import names
from sealbook.validate.contracts import validator_version
from sealbook.validate.findings import Report
from tests.support.validation import (
    CONTRACT,
    LATER_RUN,
    LATEST_RUN,
    RUN,
    Bench,
    key,
    ledger_content,
    query,
    row,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

STRICTER = replace(CONTRACT, rules=(*CONTRACT.rules, Rule("no_ten_clicks", "metrics_clicks <> 10")))


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        yield Bench(tmp_path / "raw", ledger, spark)


def test_a_verdict_carries_its_evidence_into_the_ledger(bench: Bench) -> None:
    """R-VER-2, R-STATE-3: the attempt keeps every check, and the state says what is wrong."""
    bench.seal(key("good"), rows(3))
    bench.seal(key("bad"), [row(), row()])
    bench.validate()

    good, bad = (bench.ledger.state(key(name)) for name in ("good", "bad"))
    assert (good.status, good.current_run_id, good.schema_version, good.record_count) == (
        Status.SUCCESS,
        RUN,
        "1",
        3,
    )
    assert (bad.status, bad.current_run_id) == (Status.FAILED, None)
    [attempt] = bench.ledger.attempts(key("bad"))
    assert attempt.outcome is Outcome.REJECTED
    assert attempt.validator_version == validator_version(CONTRACT)
    assert bad.error_message == attempt.error_message
    always = [name for name in names.CHECKS if name not in (names.ROW_COUNT, names.DAY_OVER)]
    assert [check.name for check in attempt.checks][: len(always)] == always


def test_nothing_is_judged_twice(bench: Bench) -> None:
    """R-STATE-5: a second go finds nothing new, and starts no job."""
    bench.seal(key(), rows(3))
    assert len(bench.validate().verdicts) == 1
    before = ledger_content(bench.ledger)

    assert not bench.validate().verdicts
    assert ledger_content(bench.ledger) == before


def test_each_run_is_judged_by_the_contract_of_its_own_version(bench: Bench) -> None:
    """Older contracts stay, so that older raw can be judged; without one there is no verdict (R-VER-4)."""
    newer = replace(
        CONTRACT,
        schema_version="2",
        columns=(*CONTRACT.columns, Column("bid", ColumnType.BIGINT, required=True)),
    )
    bench.queries = (query(newer, CONTRACT),)
    bench.seal(key("old"), rows(2))
    bench.seal(key("new"), [row(bid=1)], says={"schema_version": "2"})
    bench.seal(key("new_without"), rows(1), says={"schema_version": "2"})
    bench.seal(key("unknown"), rows(1), says={"schema_version": "3"})
    elsewhere = bench.seal(PartitionKey("demo", "c0", "nobody_asked", key().logical_date), rows(1))
    outcome = bench.validate()

    assert outcome.verdict(key("old")).schema_version == "1"
    assert outcome.verdict(key("old")).validator_version == validator_version(CONTRACT)
    assert outcome.verdict(key("new")).schema_version == "2"
    assert outcome.failed(key("new_without")) == {names.REQUIRED: (1, (1,))}
    reasons = {place: result.reason for (place, _), result in outcome.not_judged.items()}
    assert reasons == {
        key("unknown"): "demo/campaign_daily has no contract for schema_version '3'",
        elsewhere: "there is no query demo/nobody_asked in the configuration",
    }
    assert all(result.is_misconfigured for result in outcome.not_judged.values())
    assert bench.ledger.state(key("unknown")).attempt_count == 0


def test_several_runs_of_a_partition_are_judged_in_their_order(bench: Bench) -> None:
    """Each is compared with those accepted before it, also when all are judged in one go."""
    bench.queries = (query(replace(CONTRACT, row_count=RowCount(min_ratio=Decimal("0.6"), last=2))),)
    for run_id, count in ((LATEST_RUN, 8), (RUN, 10), (LATER_RUN, 5)):
        bench.seal(key(), rows(count), run_id)
    outcome = bench.validate()

    assert outcome.verdict(key(), RUN).accepted
    assert outcome.failed(key(), LATER_RUN) == {names.ROW_COUNT: (1, ())}
    assert outcome.verdict(key(), LATEST_RUN).accepted, "a rejected run does not lower the bar"
    assert [attempt.run_id for attempt in bench.ledger.attempts(key())] == [RUN, LATER_RUN, LATEST_RUN]
    assert bench.ledger.state(key()).current_run_id == LATEST_RUN


def test_a_failed_reprocessing_leaves_the_good_run_alone(bench: Bench) -> None:
    """R-STATE-3: success, reject R other than C."""
    bench.seal(key(), rows(3))
    bench.validate()
    bench.seal(key(), [row(), row()], LATER_RUN)
    bench.validate()

    state = bench.ledger.state(key())
    assert (state.status, state.current_run_id, state.attempt_count) == (Status.SUCCESS, RUN, 2)


def test_judging_again_demotes_what_fails_now(bench: Bench) -> None:
    """R-STATE-3, R-STATE-5: a demotion, and an attempt of its own for each partition."""
    bench.seal(key("a"), rows(2))
    bench.seal(key("b"), [row(metrics_clicks=11)])
    bench.seal(key("c"), [row(), row()])
    bench.validate()
    bench.queries = (query(STRICTER),)
    outcome = bench.validate_again()

    assert set(outcome.verdicts) == {(key("a"), RUN), (key("b"), RUN)}
    assert outcome.failed(key("a")) == {"no_ten_clicks": (2, (1, 2))}
    a, b, c = (bench.ledger.state(key(name)) for name in "abc")
    assert (a.status, a.current_run_id, a.attempt_count) == (Status.FAILED, RUN, 2)
    assert (b.status, b.attempt_count) == (Status.SUCCESS, 2)
    assert c.attempt_count == 1


def test_a_rehearsal_shows_the_same_and_writes_nothing(bench: Bench) -> None:
    bench.seal(key("a"), rows(2))
    bench.seal(key("b"), [row(metrics_clicks=11)])
    bench.validate()
    before = ledger_content(bench.ledger)
    bench.queries = (query(STRICTER),)
    outcome = bench.validate_again(dry_run=True)

    assert outcome.failed(key("a")) == {"no_ten_clicks": (2, (1, 2))}
    assert outcome.verdict(key("b")).accepted
    assert ledger_content(bench.ledger) == before


def test_a_wrong_rule_is_refused_before_anything_is_judged(bench: Bench) -> None:
    """Also one of a version that no run has: a contract is right as a whole, or it is not used."""
    wrong = replace(CONTRACT, schema_version="0", rules=(Rule("broken", "metrics_clicks >"),))
    bench.queries = (query(CONTRACT, wrong),)
    bench.seal(key(), rows(1))

    with pytest.raises(ConfigError, match=r"contract '0', rule broken .*does not parse"):
        bench.validate()
    assert bench.ledger.state(key()).attempt_count == 0


def test_a_rule_named_like_a_check_is_refused(bench: Bench) -> None:
    bench.queries = (query(replace(CONTRACT, rules=(Rule("json", "metrics_clicks >= 0"),))),)
    bench.seal(key(), rows(1))

    with pytest.raises(ConfigError, match="rule json"):
        bench.validate()


def test_settings_of_the_session_are_as_they_were(bench: Bench) -> None:
    """A session that somebody else uses too must not change under them."""
    watched = ("spark.sql.ansi.enabled", "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = [bench.spark.conf.get(name) for name in watched]
    bench.seal(key(), rows(1))
    bench.validate()

    assert [bench.spark.conf.get(name) for name in watched] == before


def test_nothing_of_a_job_stays_in_the_driver(bench: Bench) -> None:
    """Spark keeps every accumulator for as long as the process lives."""
    bench.seal(key(), rows(3))
    assert len(bench.validate().verdicts) == 1
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Report)]
