"""Accounts that sources told of, with their history, and when each source was asked."""

from sealbook.ledger.accounts.reader import AccountReader, Refresh
from sealbook.ledger.accounts.writer import AccountTurn, AccountWriter, Refreshed

__all__ = ["AccountReader", "AccountTurn", "AccountWriter", "Refresh", "Refreshed"]
