"""R-CTL-10: what fetching will cost is counted in requests, by how many days the source takes in one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sealbook.config import Settings, load_settings
from sealbook.control.operating import Operator
from sealbook.control.pricing import days_per_request
from sealbook.control.round import RoundOpener
from sealbook.control.working import Worker
from sealbook.extract.allowance import Allowance
from sealbook.extract.results import Ending, Extracted
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import PartitionKey, RunId
from sealbook.model.claims import Claim, Fences, ranges_of
from sealbook.model.expectations import Expectations
from sealbook.model.failures import ErrorClass
from sealbook.model.freshness import Freshness
from sealbook.model.partition_events import Stage
from sealbook.model.ranges import Stretch
from sealbook.model.selection import Selection
from sealbook.model.universe import Account, Asset, AssetName, Universe
from sealbook.model.work import Lane
from sealbook.pipeline import StageBatch
from sealbook.raw import RawReader
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.schedule import SetClock, open_work, work_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAILY = AssetName("ranged", "campaign_daily")
CUSTOMERS = ("1234567890", "2345678901")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def ranged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings of a source that takes 31 days in one request, installed as a package has it."""
    info = tmp_path / "site" / "ranged-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ranged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sealbook.sources]\nranged = tests.support.ranged:RangedSource\n")
    monkeypatch.syspath_prepend(info.parent)

    def settings(**source: object) -> Settings:
        own = {**SETTINGS["sources"]["google_ads"], "options": {}, **source}
        document = {
            **changed(SETTINGS, "sources", {"ranged": own}),
            "control": {"sources": {"ranged": {"requests_per_day": 100}}},
        }
        return load_settings(write_book(tmp_path, document, changed(CATALOGUE, "source", "ranged")))

    return settings


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger on each database."""
    with open_ledger(ledger_url, clock=SetClock(NOON)) as opened:
        yield opened


def test_the_days_of_a_request_are_those_of_the_source_and_of_its_settings(
    ranged: Callable[..., Settings],
) -> None:
    first = date.min.toordinal()
    assert days_per_request(ranged()).stretches == {DAILY: (Stretch(first, 31),)}
    assert days_per_request(ranged(days_per_request=7)).stretches == {DAILY: (Stretch(first, 7),)}
    assert days_per_request(ranged(days_per_request=1)).stretches == {}


def test_what_is_expected_of_a_lane_is_counted_in_requests(
    ranged: Callable[..., Settings], ledger: Ledger
) -> None:
    """Open days as they are claimed, and due points of the same time of the day as they come."""
    points = (3 * HOUR, DAY, 2 * DAY, 3 * DAY, 10 * DAY, 11 * DAY + HOUR)
    accounts = {name: Account(name, first_day=date(2026, 1, 1)) for name in CUSTOMERS}
    universe = Universe({DAILY: Asset(DAILY, Freshness(points))}, {"ranged": accounts})
    open_work(ledger, [work_of(key(day), Lane.BACKFILL, ready_at=NOON) for day in (*range(40), 50)])

    def expected(settings: Settings) -> dict[Lane, int]:
        opener = RoundOpener(ledger, settings, lambda: Expectations(universe, NOON))
        return {lane: requests for (_, lane), requests in opener.expected().items()}

    backfill = {Lane.RETRY: 0, Lane.BACKFILL: 41}
    assert expected(ranged(days_per_request=1)) == {Lane.FRESH: 2, Lane.REFRESH: 10, **backfill}
    # Three days without a gap and one by itself are due again at midnight, one more an hour later.
    assert expected(ranged()) == {Lane.FRESH: 2, Lane.REFRESH: 6, **backfill, Lane.BACKFILL: 3}


def key(day: int, customer: str = CUSTOMERS[0]) -> PartitionKey:
    return PartitionKey("ranged", customer, "campaign_daily", date(2026, 1, 1) + timedelta(days=day))


class Failing:
    """Stages whose source is asked once for each range, and fails."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def work(
        self,
        claims: Iterable[Claim],
        run_id: RunId | None,
        under: Fences,
        allowances: Mapping[str, Allowance],
    ) -> Generator[StageBatch, None, None]:
        """Tell of each day, and of the request with the first."""
        del under
        assert run_id is not None
        assert allowances["ranged"].once
        for own in ranges_of(claims):
            self.asked.append(len(own))
            results = [
                Extracted(
                    claim.key,
                    run_id,
                    Ending.FAILED,
                    0.1,
                    error_class=ErrorClass.TRANSIENT,
                    error_message="no answer",
                    requests=1 if claim is own[0] else 0,
                )
                for claim in own
            ]
            yield StageBatch(Stage.EXTRACT, results)


def test_what_was_reserved_for_ranges_is_what_was_asked(
    ranged: Callable[..., Settings], ledger: Ledger
) -> None:
    settings = ranged()
    open_work(ledger, [work_of(key(day), ready_at=NOON) for day in (*range(40), 50)])
    terms = Terms(["ranged"], budgets={"ranged": 100}, ranges=days_per_request(settings))
    claims = ledger.scheduler.claim("ann", terms, limit=99)
    [reserved] = claims.reservations
    stages = Failing()
    worker = Worker(ledger, stages, settings.sources, timedelta(minutes=10), {"ranged": 100})
    tally = worker.work(claims, {})
    assert sorted(stages.asked) == [1, 9, 31]
    assert reserved.requests == tally.requests.total() == 3
    assert ledger.reader.schedule.spent() == {("ranged", Lane.FRESH): 3}


def test_a_backfill_shows_what_it_costs_by_ranges(ranged: Callable[..., Settings], ledger: Ledger) -> None:
    """Also once it is kept; a day that is open already may go by itself."""
    open_work(ledger, [work_of(key(3), Lane.RETRY, ready_at=NOON)])
    days = Selection(since=date(2026, 1, 1), until=date(2026, 1, 15))

    def requests(settings: Settings) -> tuple[int, int]:
        operator = Operator(settings, ledger, lambda: RawReader.open(settings.raw), lambda _: None)
        shown = operator.backfill(days, actor="ann", reason="a new client")
        assert operator.previewed(shown.plan.id).estimate == shown.estimate
        assert shown.estimate is not None
        return shown.plan.requests, shown.estimate.budgets[0].requests

    assert requests(ranged(days_per_request=1)) == (30, 30)
    assert requests(ranged(days_per_request=7)) == (7, 7), "3 + 1 + 7 + 4 days of one, 7 + 7 + 1 of the other"
