"""The ledger's run-event store keeps the contract on each database (R-EVT-1 to R-EVT-8)."""

from __future__ import annotations

import pytest

from sealbook.ledger import Ledger
from sealbook.ledger.events import SqlRunStore
from sealbook.testing.run_store_contract import EventFeedContract, RunStoreContract


class TestSqlRunStore(RunStoreContract, EventFeedContract):
    """Every test of both suites, on SQLite and on PostgreSQL."""

    @pytest.fixture(autouse=True)
    def _opened(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def make_store(self) -> SqlRunStore:
        """Return the store of a new ledger."""
        return self.ledger.run_store
