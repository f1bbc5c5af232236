"""R-CTL-4: what a worker holds while its heartbeat works, and what it lets go of when that does not."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from sealbook.control.holding import heartbeat
from sealbook.errors import Transient
from sealbook.model import PartitionKey
from sealbook.model.claims import Claim, Claims
from sealbook.model.work import Lane, WorkKind
from tests.support.killing import wait_until

KEYS = [PartitionKey("demo", name, "clicks", date(2026, 1, 1)) for name in "ab"]
CLAIMS = Claims(
    "ann",
    datetime(2026, 1, 2, tzinfo=UTC),
    tuple(Claim(key, Lane.FRESH, WorkKind.FETCH, 7, None, 1, 0, None) for key in KEYS),
)
LEASE = timedelta(seconds=0.1)


def ledger_that(heartbeat: Any) -> Any:
    """A ledger of which nothing is asked but to renew leases."""
    return SimpleNamespace(scheduler=SimpleNamespace(heartbeat=heartbeat))


def test_what_is_anothers_by_now_is_dropped() -> None:
    ledger = ledger_that(lambda _holder, fences, _lease: fences.keys() - KEYS[:1])
    with heartbeat(ledger, CLAIMS, LEASE, ()) as held:
        wait_until(lambda: len(held) == 1)
        assert dict(held) == {KEYS[1]: 7}


def test_a_ledger_that_cannot_be_reached_for_a_lease_loses_everything_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> set[PartitionKey]:
        raise Transient("the ledger cannot be reached")

    with heartbeat(ledger_that(fail), CLAIMS, LEASE, ()) as held:
        assert len(held) == 2
        wait_until(lambda: not held)
    assert "a lease was not renewed: the ledger cannot be reached" in caplog.text
