"""Triggers: what waits in Airflow's triggerer, without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

import sealbook
from sealbook.airflow.wanted import Wanted, few
from sealbook.errors import Transient
from sealbook.model.selection import Selection
from sealbook.views.encoding import encode

if TYPE_CHECKING:
    from sealbook.model.published_changes import Changes


class PublishedTrigger(BaseTrigger):  # type: ignore[misc]  # whoever has no Airflow has no types of it
    """Fires once all partitions that are wanted are published; what it takes is a `Wanted`, by its fields."""

    def __init__(self, wanted: dict[str, Any], poll_seconds: float = 30.0) -> None:
        super().__init__()
        self.wanted = wanted
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return how to make it again."""
        return _path(self), {"wanted": self.wanted, "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look again and again; a ledger that does not answer for a while ends nothing."""
        wanted = read_wanted(self.wanted)
        while True:
            try:
                waiting = await asyncio.to_thread(wanted.waiting)
            except Transient as error:
                self.log.warning("%s", error)
            else:
                if not waiting:
                    yield TriggerEvent({"query_name": wanted.query_name})
                    return
                self.log.info("waiting for %d: %s", len(waiting), few(waiting))
            await asyncio.sleep(self.poll_seconds)


class ChangesTrigger(BaseEventTrigger):  # type: ignore[misc]  # as above
    """Fires for changes of what is published of a query, for an AssetWatcher; the ledger keeps how far it is.

    An event is what `sealbook changes --format json` tells, and the keys of `partitions` (R-CON-5). It comes
    at least once: the token is advanced one look later, when Airflow has had the time to note the event.
    """

    def __init__(
        self,
        book: str,
        query_name: str,
        consumer: str,
        source: str | None = None,
        customers: list[str] | None = None,
        poll_seconds: float = 30.0,
        most: int = 1_000,
    ) -> None:
        super().__init__()
        self.book = book
        self.query_name = query_name
        self.consumer = consumer
        self.source = source
        self.customers = customers
        self.poll_seconds = poll_seconds
        self.most = most

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return how to make it again."""
        names = ("book", "query_name", "consumer", "source", "customers", "poll_seconds", "most")
        return _path(self), {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield changes as they come, for ever; a ledger that does not answer for a while ends nothing."""
        told: str | None = None
        while True:
            try:
                found = await asyncio.to_thread(self._next, told)
            except Transient as error:
                self.log.warning("%s", error)
            else:
                told = None
                if found.items:
                    yield TriggerEvent(_payload(self.query_name, found))
                    told = found.token
            await asyncio.sleep(self.poll_seconds)

    def _next(self, told: str | None) -> Changes:
        """Keep up to where was told, and return what follows."""
        with sealbook.open(self.book) as book:
            if told is not None:
                book.advance(self.consumer, Selection(source=self.source, queries=self.query_name), told)
            return book.changes(
                self.query_name,
                consumer=self.consumer,
                source=self.source,
                customers=self.customers,
                limit=self.most,
            )


def read_wanted(fields: dict[str, Any]) -> Wanted:
    """Make a Wanted of its fields, of which JSON has made lists."""
    customers = fields["customers"]
    return Wanted(**{**fields, "customers": None if customers is None else tuple(customers)})


def wanted_fields(wanted: Wanted) -> dict[str, Any]:
    """Return the fields of a Wanted as JSON has them."""
    customers = wanted.customers
    return {**asdict(wanted), "customers": None if customers is None else list(customers)}


def _payload(query_name: str, found: Changes) -> dict[str, Any]:
    partitions = dict.fromkeys(str(each.key) for each in found.items)
    plain: dict[str, Any] = msgspec.json.decode(encode(found.to_dict()))
    return {"query_name": query_name, "partitions": list(partitions), **plain}


def _path(trigger: object) -> str:
    return f"{type(trigger).__module__}.{type(trigger).__qualname__}"
