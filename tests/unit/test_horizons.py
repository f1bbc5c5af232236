"""Days that a source does not give any more: not asked for, and not dropped unless that is confirmed."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings
from sealbook.control.gathering import rates_of
from sealbook.control.scenario import Rates
from sealbook.control.tally import Tally
from sealbook.errors import PastHorizon, Permanent
from sealbook.extract.horizons import horizons_of
from sealbook.extract.plan import plan_extraction
from sealbook.extract.source import Bounded, load_source
from sealbook.model import PartitionKey, PartitionState, Status, Verdict
from sealbook.model.failures import AttemptCounts, ErrorClass
from sealbook.model.horizons import NO_HORIZONS, Horizons
from sealbook.model.keys import RunId
from sealbook.model.partition_events import Stage
from sealbook.model.retry import Cause
from sealbook.model.selection import Selection
from sealbook.model.universe import Account, Asset, AssetName, Universe
from sealbook.pipeline import StageBatch
from sealbook.validate.irreplaceable import Irreplaceables
from sealbook.validate.results import NotJudged, Result
from tests.support.extraction import demo_queries
from tests.support.validation import LATER_RUN, LATEST_RUN, RUN, accept, key, reject

FIRST = date(2026, 2, 1)
BOUND = Horizons({"demo": FIRST})
SOURCES = {"demo": SourceSettings("demo", ("a", "b"), demo_queries(), {})}
QUERIES = len(demo_queries())


@pytest.mark.parametrize(
    ("today", "first"),
    [
        (date(2026, 11, 18), date(2023, 10, 17)),
        (date(2026, 1, 1), date(2022, 11, 30)),
        (date(2026, 3, 31), date(2023, 2, 27)),  # there is no 31 February
        (date(2027, 3, 31), date(2024, 2, 28)),  # a leap year
    ],
)
def test_google_ads_gives_37_months_and_a_day_for_those_whose_today_is_yesterday(
    today: date, first: date
) -> None:
    source = load_source("google_ads", {"endpoint": "h:1"})
    assert isinstance(source, Bounded)
    assert source.horizon(today) == first


@given(today=st.dates(date(2020, 1, 1), date(2100, 1, 1)), months=st.integers(1, 240))
def test_a_horizon_only_moves_forward(today: date, months: int) -> None:
    source = load_source("google_ads", {"endpoint": "h:1", "horizon_months": months})
    assert isinstance(source, Bounded)
    horizon, next_day = source.horizon(today), source.horizon(today + timedelta(days=1))
    assert horizon is not None
    assert next_day is not None
    assert horizon <= next_day <= horizon + timedelta(days=4)
    assert horizon < today


def test_a_source_that_has_none_or_is_not_here_bounds_nothing(caplog: pytest.LogCaptureFixture) -> None:
    elsewhere = SourceSettings("elsewhere", ("a",), demo_queries(), {})
    broken = SourceSettings("google_ads", ("a",), demo_queries(), {"colour": "red"})
    assert horizons_of([SOURCES["demo"], elsewhere], FIRST) == NO_HORIZONS
    assert caplog.records == []
    assert horizons_of([broken], FIRST) == NO_HORIZONS
    assert "google_ads cannot say how far back it goes" in caplog.text


def test_days_past_the_horizon_are_left_out_of_a_span_and_counted() -> None:
    plan = plan_extraction(SOURCES, Selection(since="2026-01-30", until="2026-02-02"))
    within = plan.within(BOUND)
    assert (len(within), within.past_horizon) == (2 * 2 * QUERIES, 2 * 2 * QUERIES)
    assert within.days == (FIRST, date(2026, 2, 2))
    assert plan.within(NO_HORIZONS) == plan


def test_a_key_past_the_horizon_is_refused_with_the_reason() -> None:
    named = [PartitionKey("demo", "a", "campaign_daily", day) for day in (FIRST, date(2026, 1, 31))]
    with pytest.raises(PastHorizon, match="2026-01-31: source demo gives days from 2026-02-01 on only"):
        plan_extraction(SOURCES, Selection(keys=named)).within(BOUND)
    assert len(plan_extraction(SOURCES, Selection(keys=named[:1])).within(BOUND)) == 1


def test_a_span_that_lies_past_the_horizon_is_refused() -> None:
    plan = plan_extraction(SOURCES, Selection(since="2026-01-01", until="2026-01-31"))
    with pytest.raises(PastHorizon, match="all that is chosen is too long ago") as caught:
        plan.within(BOUND)
    assert isinstance(caught.value, Permanent)
    assert ErrorClass.of(caught.value) is ErrorClass.PAST_HORIZON


DAYS = st.dates(date(2026, 1, 1), date(2026, 4, 1))
MAYBE = st.none() | DAYS


@given(first_day=MAYBE, last_day=MAYBE, known=MAYBE, horizon=DAYS)
def test_what_can_be_fetched_is_what_is_due_from_the_horizon_on(
    first_day: date | None, last_day: date | None, known: date | None, horizon: date
) -> None:
    """Of that source; R-PST-6 stands for all else."""
    if first_day is not None and last_day is not None and first_day > last_day:
        first_day, last_day = last_day, first_day
    asset, now = AssetName("ads", "clicks"), datetime(2026, 3, 1, tzinfo=UTC)
    account = Account("a", UTC, first_day, last_day)
    accounts = {"ads": {"a": account}}
    universe = Universe({asset: Asset(asset)}, accounts, {} if known is None else {asset: known})

    def due(of: Universe) -> set[date]:
        return {
            span.first + timedelta(days=number)
            for span in of.due(Selection(), now)
            for number in range(span.days)
        }

    assert due(universe.since({"ads": horizon})) == {day for day in due(universe) if day >= horizon}
    assert universe.since({"shop": horizon}).accounts == universe.accounts


def state(run_id: str = LATER_RUN, rows: int = 3) -> PartitionState:
    pending = PartitionState.pending(key("old", date(2026, 1, 1)))
    return pending._replace(status=Status.SUCCESS, current_run_id=RunId(run_id), record_count=rows)


@pytest.mark.parametrize(
    ("verdict", "withheld"),
    [
        (accept(state().key, LATEST_RUN, 0), "it is empty, and would take the place of 3 rows"),
        (accept(state().key, LATEST_RUN, 1), None),
        (accept(state().key, LATER_RUN, 3, "again"), None),
        (accept(state().key, RUN, 0), None),  # an older one takes no authority
        (reject(state().key, LATER_RUN, "again"), "rejecting it would take 3 rows from consumers: bad"),
        (reject(state().key, LATEST_RUN), None),  # what is accepted stays
        (accept(key("young", FIRST), LATEST_RUN, 0), None),
    ],
)
def test_a_verdict_that_would_drop_the_only_copy_is_withheld(verdict: Verdict, withheld: str | None) -> None:
    why = Irreplaceables(BOUND, {state().key: state()}).why_withheld(verdict)
    if withheld is None:
        assert why is None
    else:
        assert why is not None
        assert why.startswith("irreplaceable, as source demo gives days from 2026-02-01 on only")
        assert withheld in why
        assert "--confirm irreplaceable" in why


def test_a_day_that_was_empty_before_has_nothing_to_lose() -> None:
    held = Irreplaceables(BOUND, {state().key: state(rows=0)})
    assert held.why_withheld(accept(state().key, LATEST_RUN, 0)) is None


def test_what_was_just_accepted_is_guarded_too() -> None:
    """Several runs of a day may be judged in one go."""
    held = Irreplaceables(BOUND, {state().key: replace_run(state(), RUN, 0)})
    assert held.why_withheld(accept(state().key, LATER_RUN, 5)) is None
    assert "5 rows" in str(held.why_withheld(accept(state().key, LATEST_RUN, 0)))


def replace_run(before: PartitionState, run_id: str, rows: int) -> PartitionState:
    return before._replace(current_run_id=RunId(run_id), record_count=rows)


def test_a_loop_parks_what_is_withheld() -> None:
    """It would only be withheld again: somebody has to say something."""
    tally = Tally()
    withheld: list[Result] = [
        NotJudged(state().key, RunId(LATEST_RUN), "irreplaceable", is_irreplaceable=True)
    ]
    tally.add(StageBatch(Stage.VALIDATE, withheld))
    assert tally.undone[state().key].cause is Cause.PERMANENT


def test_days_past_the_horizon_say_nothing_of_how_often_others_fail() -> None:
    """A simulation would make failures of other days rarer than they are."""
    failed = Counter({ErrorClass.PAST_HORIZON: 90, ErrorClass.TRANSIENT: 1})
    counts = AttemptCounts(accepted=9, failed=failed)
    asset = AssetName("ads", "clicks")
    assert rates_of({asset: counts})[asset] == Rates(transient=0.1)
