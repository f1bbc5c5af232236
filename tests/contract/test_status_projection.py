"""R-PST-2, R-PST-9: the log taken into partition status, exactly once, and built again the same."""

from __future__ import annotations

from datetime import UTC, datetime

from sealbook.ledger import Ledger
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.universe import Account, Asset, AssetName, Universe
from tests.support.ledger import KEY, accept, reject, run_id
from tests.support.pointers import load

ASSET = AssetName(KEY.source, KEY.query_name)
UNIVERSE = Universe(
    {ASSET: Asset(ASSET)},
    {KEY.source: {KEY.customer_id: Account(KEY.customer_id)}},
    {ASSET: KEY.logical_date},
)
NOW = datetime(2026, 1, 4, tzinfo=UTC)
EXPECTED = Expectations(UNIVERSE, NOW)


def test_a_failed_retry_keeps_the_materialization(ledger: Ledger) -> None:
    """ADR-026."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 2)])
    ledger.projector().catch_up()
    line = ledger.reader.statuses.line(KEY, EXPECTED)
    assert line.last_materialization_run_id == run_id(1)
    assert line.last_attempt_run_id == run_id(2)
    assert line.last_attempt_outcome is AttemptOutcome.FAILED
    assert line.availability is Availability.PUBLISHED
    assert line.display is Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED
    lines = ledger.reader.statuses.lines(EXPECTED, limit=10)
    assert [each.key.logical_date.day for each in lines] == [1, 2, 3]
    assert lines[0] == line
    assert [each.missing for each in lines] == [False, True, True]
