"""Consumers, and what each has not been told yet."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sealbook.ledger.pointers import PointerReader
from sealbook.model.publication import Change
from sealbook.model.published_changes import ChangeToken, Consumer
from sealbook.model.selection import Selection

_MOST = 10_000
"""Changes that are counted: to know that a consumer is far behind, more need not be read."""


class ConsumerLag(NamedTuple):
    """A consumer, and the changes since its token: how many, how many of them withdrawals, since when."""

    name: str
    source: str
    query_name: str
    version: int
    token: str
    advanced_at: datetime
    holds: bool
    changes: int
    withdrawn: int
    more: bool
    """Whether there are more than were counted."""
    since: datetime | None
    """When the first of them came about; None if there is none, or a verdict alone made it."""


def consumer_lags(pointers: PointerReader) -> list[ConsumerLag]:
    """Return every consumer, by name, with its lag."""
    return [_lag(pointers, each) for each in pointers.consumers()]


def _lag(pointers: PointerReader, consumer: Consumer) -> ConsumerLag:
    followed = Selection(source=consumer.source, queries=consumer.query_name)
    found = pointers.changes(followed, ChangeToken.parse(consumer.token), limit=_MOST)
    withdrawn = sum(each.kind is Change.WITHDRAWN for each in found.items)
    since = found.items[0].at if found.items else None
    return ConsumerLag(*consumer, len(found.items), withdrawn, found.more, since)
