"""Why a partition is as it is: every kind of partition, on both databases, with commands that there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import Check, PartitionKey, RunEvent, Severity
from sealbook.model.expectations import Expectations
from sealbook.model.explanation import Explanation, Problem, Reading
from sealbook.model.failures import ErrorClass
from sealbook.model.freshness import Freshness
from sealbook.model.outlook import Prospect
from sealbook.model.partition_events import PartitionCancelled, PartitionFailed, PartitionSealed, Stage
from sealbook.model.staleness import CodeInForce
from sealbook.model.universe import Account, Asset, AssetName, EarlierZone, Universe, Upstream
from sealbook.status.archive import RunArchive
from sealbook.status.explaining import explain
from sealbook.status.retention import Retirement, retire_runs
from tests.support.commands import check_command
from tests.support.ledger import accept, reject, run_id
from tests.support.pointers import load

DAY = date(2026, 1, 1)
START = datetime(2026, 1, 2, 1, tzinfo=UTC)
CLICKS, DAILY, REPORT = (AssetName("demo", name) for name in ("clicks", "daily", "report"))
KEY, UPSTREAM, TOP = (PartitionKey("demo", "a", name, DAY) for name in ("report", "daily", "clicks"))
FAILED = (
    Check("json", passed=True),
    Check("primary_key", passed=False, violations=2, lines=(21, 22), detail="2 lines repeat an id"),
)


class Hands:
    """A clock that is set by hand, and goes on by a minute each time that it is looked at."""

    now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


class Told:
    """A ledger, what is expected, and explanations of both."""

    def __init__(self, ledger: Ledger, clock: Hands, folder: Path) -> None:
        self.ledger = ledger
        self.clock = clock
        self.archive = RunArchive(str(folder))
        self.freshness: Freshness | None = None
        self.upstreams = False
        self.code: CodeInForce | None = None
        self.last_day: date | None = None
        self.zones: list[EarlierZone] = []
        self.zone: tzinfo = UTC
        self.first_known = {CLICKS: DAY, DAILY: DAY, REPORT: DAY}

    def explain(self, key: PartitionKey = KEY) -> Explanation:
        """Explain a partition, and see that its commands are there, and that SQL gives the same reasons."""
        self.ledger.projector().catch_up()
        above = {DAILY: (Upstream(CLICKS),), REPORT: (Upstream(DAILY),)} if self.upstreams else {}
        assets = {
            each: Asset(each, self.freshness if each is REPORT else None, above.get(each, ()))
            for each in (CLICKS, DAILY, REPORT)
        }
        account = Account("a", self.zone, last_day=self.last_day, earlier=tuple(self.zones))
        accounts = {"demo": {"a": account}}
        in_force = {} if self.code is None else {REPORT: self.code}
        expectations = Expectations(Universe(assets, accounts, self.first_known), self.clock.now, in_force)
        found = explain(self.ledger.reader, self.archive, expectations, key)
        following = () if found.following is None else found.following.ways
        for way in (*following, *found.history.ways, *(way for each in found.problems for way in each.ways)):
            check_command(way.command)
        line = self.ledger.reader.statuses.line(key, expectations)
        stale = [each.kind for each in found.problems if each.kind.isupper()]
        assert stale == list(line.stale_reasons)
        return found

    def publish(self, key: PartitionKey = KEY, run: int = 1) -> None:
        self.ledger.judge([accept(key, run)])
        load(self.ledger)

    def fail(self, run: int, stage: Stage = Stage.EXTRACT, key: PartitionKey = KEY) -> None:
        self.ledger.runs.tell(
            [
                PartitionFailed(
                    key=key, run_id=run_id(run), attempt="1", failed_stage=stage,
                    error_class=ErrorClass.TRANSIENT, error=f"{key}: the export has not arrived",
                )
            ]
        )  # fmt: skip

    def seal(self, run: int) -> None:
        self.ledger.runs.tell(
            [
                PartitionSealed(
                    key=KEY, run_id=run_id(run), schema_version="1", record_count=10, payload_bytes=2,
                    payload_sha256="a" * 64, query_hash="b" * 64, extracted_at=START,
                )
            ]
        )  # fmt: skip


@pytest.fixture
def told(ledger_url: str, tmp_path: Path) -> Iterator[Told]:
    clock = Hands()
    with open_ledger(ledger_url, clock=clock) as ledger:
        yield Told(ledger, clock, tmp_path)


def kinds(found: Explanation) -> list[str]:
    return [each.kind for each in found.problems]


def commands(problem: Problem) -> list[str]:
    return [way.command.removeprefix("sealbook ").replace(str(KEY), "KEY") for way in problem.ways]


def test_nobody_ever_touched_it(told: Told) -> None:
    """R-PST-6."""
    found = told.explain()
    assert found.standing.reading is Reading.NOT_READABLE
    [missing] = found.problems
    assert (missing.kind, missing.text, missing.since) == (
        "missing", "nobody has attempted it", datetime(2026, 1, 2, tzinfo=UTC),
    )  # fmt: skip
    assert commands(missing) == ["run KEY"]
    assert (found.history.runs, found.history.ways) == (0, ())


def test_what_the_schedule_has_planned_comes_next(told: Told) -> None:
    """R-CTL-2: when it is tried again, and why then."""
    for run in (1, 2, 3):
        told.fail(run)
    found = told.explain()
    assert found.following is not None
    assert found.following.at is not None
    when = f"{found.following.at:%Y-%m-%d %H:%M} UTC"
    assert found.following.text == (
        f"From {when} on a control loop fetches it, in lane retry: 3 failures in a row, the last transient."
    )
    assert found.outlook is not None
    assert (found.outlook.prospect, found.outlook.next_run_at) == (Prospect.WAITING, found.following.at)


def test_what_the_next_round_plans_comes_next(told: Told) -> None:
    """R-PST-8: what is due and has no work gets some, and so does what is accepted and not loaded."""
    assert _next(told) == f"{ROUND} a fetch: it is due, and consumers get nothing."
    told.ledger.judge([accept(KEY, 1)])
    assert _next(told) == f"{ROUND} its loading: run {run_id(1)} is accepted."
    load(told.ledger)
    assert _next(told) == "Nothing by itself: its query has no due points."
    told.freshness = Freshness((timedelta(hours=1), timedelta(days=2)))
    told.clock.now += timedelta(days=3)
    assert _next(told) == f"{ROUND} another fetch: it is due again since 2026-01-04 00:00 UTC."


ROUND = "The next round of a control loop (`sealbook control tick`) plans"


def _next(told: Told) -> str:
    found = told.explain()
    assert found.following is not None
    return found.following.text


def test_a_customer_that_is_not_configured_any_more(told: Told) -> None:
    """R-PST-6: what is known of it is told, and that nothing more comes; one who never was may be a typo."""
    gone = replace(KEY, customer_id="gone")
    told.publish(gone)
    found = told.explain(gone)
    assert found.standing.reading is Reading.READABLE
    assert found.following is not None
    assert (
        found.following.text == "Nothing: it is not expected any more, as demo has no customer gone, but a."
    )
    found = told.explain(replace(KEY, customer_id="A"))
    assert (found.standing.reading, found.following) == (Reading.NOT_EXPECTED, None)
    assert found.standing.text == "Nothing is expected here: demo has no customer A, but a."


def test_it_is_past_its_deadline(told: Told) -> None:
    told.freshness = Freshness((timedelta(hours=1),))
    told.clock.now += timedelta(hours=2)
    [missing] = told.explain().problems
    assert missing.text == "nobody has attempted it, and its deadline has passed"


def test_it_is_not_due(told: Told) -> None:
    told.freshness = Freshness((timedelta(hours=6),))
    found = told.explain()
    assert found.standing.reading is Reading.NOT_DUE
    assert found.standing.text == "It is due 2026-01-02 06:00 UTC."
    assert (found.problems, found.following) == ((), None)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("other/a/report/2026-01-01", "no source other is configured, but demo"),
        ("demo/a/other/2026-01-01", "demo has no query other, but clicks, daily, report"),
        ("demo/b/report/2026-01-01", "demo has no customer b, but a"),
        ("demo/a/report/2025-12-31", "the first day that is known of demo/report is 2026-01-01"),
        ("demo/a/report/2026-01-05", "the last day of customer a is 2026-01-04"),
    ],
)
def test_it_is_not_expected(told: Told, key: str, why: str) -> None:
    told.last_day = date(2026, 1, 4)
    found = told.explain(PartitionKey.parse(key))
    assert found.standing.reading is Reading.NOT_EXPECTED
    assert found.standing.text == f"Nothing is expected here: {why}."
    assert found.problems == ()


def test_nothing_is_known_of_its_query(told: Told) -> None:
    del told.first_known[REPORT]
    assert "nothing is known of demo/report yet" in told.explain().standing.text


def test_its_extraction_failed(told: Told) -> None:
    told.fail(1)
    found = told.explain()
    assert found.standing.text == "Consumers get nothing: no run of it was ever published."
    [failed] = found.problems
    assert failed.text == f"run {run_id(1)} failed in extract (transient): the export has not arrived"
    assert commands(failed) == ["run KEY"]
    assert found.history.runs == 1


def test_it_was_rejected_and_its_lines_are_named(told: Told) -> None:
    told.ledger.judge([reject(KEY, 1, checks=FAILED)])
    told.code = CodeInForce("c" * 64, START)
    found = told.explain()
    [rejected] = found.problems
    assert rejected.text == f"run {run_id(1)} does not hold the contract in force, cccccccccccc"
    [finding] = rejected.findings
    assert (finding.check, finding.lines) == ("primary_key", (21, 22))
    assert commands(rejected) == ["run KEY", "validate --rejected KEY", "raw show KEY --lines 21,22"]
    told.code = CodeInForce("d" * 64, told.clock.now)
    assert "a contract that was in force before dddd" in told.explain().problems[0].text


def test_a_rejection_without_checks_says_why(told: Told) -> None:
    told.ledger.judge([reject(KEY, 1, error="the seal is broken")])
    [rejected] = told.explain().problems
    assert rejected.text.endswith("does not hold its contract: the seal is broken")


def test_it_is_sealed_and_not_judged(told: Told) -> None:
    told.seal(1)
    [waits] = told.explain().problems
    assert (waits.kind, commands(waits)) == ("not_judged", ["validate KEY"])


def test_it_is_accepted_and_not_loaded(told: Told) -> None:
    told.ledger.judge([accept(KEY, 1)])
    [waits] = told.explain().problems
    assert (waits.kind, commands(waits)) == ("not_loaded", ["load KEY"])


def test_it_is_readable(told: Told) -> None:
    told.publish()
    found = told.explain()
    assert found.problems == ()
    assert found.standing.reading is Reading.READABLE
    assert (found.standing.run_id, found.standing.record_count) == (run_id(1), 10)
    assert found.standing.since is not None
    assert (found.history.runs, found.history.judgements, found.history.publications) == (1, 1, 1)


def test_it_is_provisional_where_it_was_fetched_before_the_end_of_its_day(told: Told) -> None:
    early = Check("day_over", passed=False, violations=1, detail="early", severity=Severity.WARN)
    told.ledger.judge([accept(KEY, 1, checks=(early,))])
    load(told.ledger)
    assert told.explain().standing.text.endswith("provisional: it was fetched before the day was over.")
    over = Check("day_over", passed=True, detail="over", severity=Severity.WARN)
    told.ledger.judge([accept(KEY, 2, checks=(over,))])
    load(told.ledger)
    assert "provisional" not in told.explain().standing.text


def test_when_the_day_is_and_since_when_its_account_has_which_time_zone(told: Told) -> None:
    assert told.explain().day is None
    told.zone = ZoneInfo("Asia/Tokyo")
    assert told.explain().day == (
        "The day lasts from 2025-12-31 15:00 UTC to 2026-01-01 15:00 UTC, as in Asia/Tokyo."
    )
    told.zones = [
        EarlierZone(date(2025, 12, 1), UTC),
        EarlierZone(date(2026, 1, 2), ZoneInfo("Europe/Berlin")),
    ]
    found = told.explain()
    assert found.day == (
        "The day lasts from 2025-12-31 23:00 UTC to 2026-01-01 23:00 UTC, as in Europe/Berlin;"
        " from 2025-12-01 on, days of the account are those of Europe/Berlin;"
        " from 2026-01-02 on, days of the account are those of Asia/Tokyo."
    )
    assert found.to_dict()["day"] == found.day


def test_it_is_behind(told: Told) -> None:
    told.publish()
    told.ledger.judge([accept(KEY, 2)])
    found = told.explain()
    assert found.standing.run_id == run_id(1)
    [behind] = found.problems
    assert (behind.kind, commands(behind)) == ("behind", ["load KEY"])


def test_the_last_attempt_failed_and_what_was_published_stays(told: Told) -> None:
    told.publish()
    told.ledger.judge([reject(KEY, 2, checks=FAILED)])
    found = told.explain()
    assert found.standing.run_id == run_id(1)
    [rejected] = found.problems
    assert rejected.text.endswith("what was published before stays readable")
    assert commands(rejected) == ["run KEY", "raw show KEY --lines 21,22"], "the state has not failed"
    told.fail(3)
    [failed] = told.explain().problems
    assert failed.text.startswith(f"run {run_id(3)} failed in extract")


def test_it_could_not_be_staged(told: Told) -> None:
    told.ledger.judge([accept(KEY, 1)])
    told.fail(1, Stage.LOAD)
    found = told.explain()
    assert kinds(found) == ["not_loaded", "failed"]
    assert commands(found.problems[1]) == ["load KEY"]


def test_it_was_demoted_and_can_be_rolled_back(told: Told) -> None:
    told.publish(run=1)
    told.publish(run=2)
    before = told.clock.now
    told.ledger.judge([reject(KEY, 2, again="x", checks=FAILED)])
    for _ in range(2):
        found = told.explain()
        assert found.standing.text == "Consumers get nothing any more."
        [withdrawn] = found.problems
        assert withdrawn.text == f"run {run_id(2)} was published, and rejected when it was judged again"
        assert withdrawn.since is not None
        assert before < withdrawn.since <= before + timedelta(minutes=2), "since the verdict, not the load"
        assert commands(withdrawn) == [
            "run KEY",
            "validate --rejected KEY",
            f"state rollback KEY --to {run_id(1)} --reason '…'",
            "raw show KEY --lines 21,22",
        ]
        told.clock.now += timedelta(hours=1)
        load(told.ledger)


def test_it_was_requeued(told: Told) -> None:
    told.ledger.judge([reject(KEY, 1)])
    told.ledger.requeue([KEY], actor="ann", reason="to see")
    [rejected] = told.explain().problems
    assert commands(rejected) == ["run KEY", "validate KEY"], "it is judged again as if it were new"


def test_its_run_was_cancelled(told: Told) -> None:
    fact = PartitionCancelled(key=KEY, run_id=run_id(1), actor="ann", reason="wrong week")
    told.ledger.run_store.append_event(fact.to_event())
    [cancelled] = told.explain().problems
    assert (cancelled.kind, commands(cancelled)) == ("cancelled", ["run KEY"])


def test_it_is_past_a_due_point_and_then_settled(told: Told) -> None:
    """R-PST-8."""
    told.freshness = Freshness((timedelta(hours=1), timedelta(days=3)), timedelta(hours=2))
    told.publish()
    found = told.explain()
    assert found.following is not None
    assert (
        found.following.text == "It is due again 2026-01-05 00:00 UTC, and late from 2026-01-05 02:00 UTC on."
    )
    told.clock.now = datetime(2026, 1, 5, 3, tzinfo=UTC)
    found = told.explain()
    [stale] = found.problems
    assert (stale.kind, stale.since) == ("FRESHNESS_POLICY", datetime(2026, 1, 5, 2, tzinfo=UTC))
    assert commands(stale) == ["run KEY"]
    told.publish(run=2)
    found = told.explain()
    assert found.problems == ()
    assert found.following is not None
    assert found.following.text == "Nothing: it is settled, and will not be due again."


def test_what_it_is_made_of_changed_all_the_way_up(told: Told) -> None:
    told.upstreams = True
    for key in (TOP, UPSTREAM, KEY):
        told.publish(key)
    assert told.explain().problems == ()
    told.publish(UPSTREAM, 2)
    told.publish(TOP, 2)
    [stale] = told.explain().problems
    assert (stale.kind, commands(stale)) == ("UPSTREAM_CHANGED", ["run KEY"])
    [cause] = stale.causes
    assert cause.key == UPSTREAM
    assert f"by run {run_id(2)}; stale: UPSTREAM_CHANGED" in cause.text
    [above] = cause.causes
    assert (above.key, above.causes) == (TOP, ())


def test_what_it_is_made_of_was_never_published(told: Told) -> None:
    """R-PST-4."""
    told.upstreams = True
    told.publish()
    [stale] = told.explain().problems
    assert stale.kind == "UPSTREAM_UNKNOWN"
    assert [each.text for each in stale.causes] == ["nobody has attempted it"]
    assert commands(stale) == [f"explain {UPSTREAM}"]
    told.fail(1, key=UPSTREAM)
    [stale] = told.explain().problems
    assert stale.causes[0].text.startswith(
        f"never published; its last attempt, run {run_id(1)}, failed 2026-"
    )


def test_another_contract_is_in_force(told: Told) -> None:
    told.publish()
    told.code = CodeInForce("d" * 64, told.clock.now)
    [stale] = told.explain().problems
    assert (stale.kind, commands(stale)) == ("CODE_UNKNOWN", ["validate --revalidate KEY"])


def test_what_was_withdrawn_is_not_judged_again_as_if_it_were_accepted(told: Told) -> None:
    told.publish()
    told.ledger.judge([reject(KEY, 1, again="x", checks=FAILED)])
    told.code = CodeInForce("d" * 64, told.clock.now)
    withdrawn, stale = told.explain().problems
    assert "validate --rejected KEY" in commands(withdrawn)
    assert (stale.kind, commands(stale)) == ("CODE_UNKNOWN", []), "nothing is accepted"


def test_a_run_that_was_retired_is_explained_from_the_archive(told: Told) -> None:
    store = told.ledger.run_store
    store.append_event(RunEvent.new(run_id(1), "RunStarted"))
    told.fail(1)
    store.append_event(RunEvent.new(run_id(1), "RunFailed"))
    before = told.explain()
    told.clock.now += timedelta(days=100)
    [retired] = retire_runs(store, told.archive, timedelta(days=90), actor="ann", reason="old")
    assert retired.became is Retirement.RETIRED
    assert told.ledger.reader.partition_log.events(KEY) == []
    after = told.explain()
    assert after.problems == before.problems
    told.archive = RunArchive(f"{told.archive.url}/elsewhere")
    [failed] = told.explain().problems
    assert failed.text.endswith("failed in extract; why is neither in the log nor in the archive")
