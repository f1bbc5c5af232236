"""Google Ads with its limits: quotas of a sliding day by project and account, and the horizon."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sealbook.errors import PastHorizon, QuotaScope
from sealbook.extract.extractor import Extractor
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.source import Source, load_source
from sealbook.ledger import open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import Stage
from sealbook.model.retry import Cause, Stop
from sealbook.model.selection import Selection
from sealbook.pipeline.steps import steps_of
from tests.support.google_ads import Batch, google_ads_key, google_ads_query
from tests.support.google_ads_limits import LimitedServer

ROWS = Batch(["campaign.id"], [{"campaign": {"id": number}} for number in range(3)])


def source(server: LimitedServer) -> Source:
    return load_source("google_ads", {"endpoint": server.endpoint})


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.parametrize(
    ("limits", "scope", "rate", "other_waits"),
    [
        ({"per_account": 2}, QuotaScope.ACCOUNT, "Operations per day for account", False),
        ({"per_project": 2}, QuotaScope.SOURCE, "Operations per day for project", True),
    ],
)
def test_a_quota_that_is_used_up_pauses_its_scope_until_the_time_that_the_server_names(
    limits: Mapping[str, int], scope: QuotaScope, rate: str, other_waits: bool, tmp_path: Path
) -> None:
    """R-CTL-7: from the server's answer to the pause in the ledger."""
    clock, keys = Clock(), [google_ads_key(day=date(2026, 1, day)) for day in (1, 2, 3)]
    with (
        LimitedServer(clock, default=[ROWS], **limits) as server,
        closing(open_ledger(f"sqlite:///{tmp_path}/book.db")) as ledger,
    ):
        made = source(server)
        for key in keys[:2]:
            assert len(list(made.fetch(key, google_ads_query()))) == 3
            clock.now += timedelta(hours=1)
        run_id = ledger.open_run()
        extractor = Extractor(
            run_id, "google_ads", {"campaign_daily": google_ads_query()}, (tmp_path / "raw").as_uri(),
            {"endpoint": server.endpoint}, retry=RetryPolicy(tries=1),
        )  # fmt: skip
        [failed] = extractor.extract((keys[2],))
        assert (failed.quota_scope, failed.retry_after) == (scope, 22 * 3600)
        assert f"(rate {rate})" in str(failed.error_message)
        assert len(server.requests) == 2
        with steps_of(ledger, Stage.EXTRACT, [run_id], planned=[Selection(keys=keys[2:])]) as steps:
            steps.record([failed.fact(steps.attempt(run_id))])
        [pause] = ledger.reader.schedule.pauses()
        assert pause.until is not None
        waits = pause.until - ledger.reader.now()
        assert timedelta(hours=21, minutes=59) < waits <= timedelta(hours=22)
        assert (pause.scope.customer_id is None) is other_waits
        clock.now += timedelta(hours=22)  # the first of the two is a day old
        assert len(list(made.fetch(keys[2], google_ads_query()))) == 3


def test_a_day_past_the_horizon_is_refused_as_such() -> None:
    clock = Clock()
    with LimitedServer(clock, default=[ROWS]) as server:
        made = source(server)
        assert list(made.fetch(google_ads_key(day=date(2023, 10, 18)), google_ads_query()))
        with pytest.raises(PastHorizon, match="REQUESTED_DATE_GRANULARITY_NOT_SUPPORTED"):
            list(made.fetch(google_ads_key(day=date(2023, 10, 17)), google_ads_query()))


def test_a_day_past_the_horizon_is_not_even_asked_for_and_given_up(tmp_path: Path) -> None:
    """R-CTL-5, R-CTL-7: by the extractor's own look, and by the server's word where that says otherwise."""
    old = google_ads_key(day=date(2020, 1, 1))
    with (
        LimitedServer(Clock(), default=[ROWS]) as server,
        closing(open_ledger(f"sqlite:///{tmp_path}/book.db")) as ledger,
    ):
        for months, requests, said in ((37, 0, "not asked for"), (1200, 1, "NOT_SUPPORTED")):
            run_id = ledger.open_run()
            options = {"endpoint": server.endpoint, "horizon_months": months}
            extractor = Extractor(
                run_id,
                "google_ads",
                {"campaign_daily": google_ads_query()},
                (tmp_path / "raw").as_uri(),
                options,
            )
            [failed] = extractor.extract((old,))
            assert said in str(failed.error_message)
            assert failed.error_class is ErrorClass.PAST_HORIZON
            assert failed.requests == requests
            with steps_of(ledger, Stage.EXTRACT, [run_id], planned=[Selection(keys=[old])]) as steps:
                steps.record([failed.fact(steps.attempt(run_id))])
            found = ledger.reader.schedule.work(old)
            assert found is not None
            assert (found.work.stop, found.work.cause) == (Stop.PAST_HORIZON, Cause.PAST_HORIZON)
            assert not ledger.scheduler.claim("me", Terms(["google_ads"]), limit=9)
