"""A sensor that waits for partitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.configuration import conf
from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from sealbook.airflow.triggers import PublishedTrigger, wanted_fields
from sealbook.airflow.wanted import Wanted, few
from sealbook.errors import SealbookError, Transient


class PublishedSensor(BaseSensorOperator):  # type: ignore[misc]  # whoever has no Airflow has no types of it
    """Succeeds once every partition that is wanted is published, and each at least as fresh as is asked.

    `book` is the folder of a sealbook.yaml. Without customers and days it is all that is due of the query.
    `published_since` is a moment: `"{{ data_interval_end }}"` asks that each was published after that.
    A `deferrable` one waits in the triggerer and holds no worker.
    """

    template_fields: Sequence[str] = ("book", "query_name", "customers", "since", "until", "published_since")

    def __init__(
        self,
        *,
        book: str,
        query_name: str,
        source: str | None = None,
        customers: Sequence[str] | str | None = None,
        since: str | None = None,
        until: str | None = None,
        published_since: str | None = None,
        strict: bool = False,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.book = book
        self.query_name = query_name
        self.source = source
        self.customers = customers
        self.since = since
        self.until = until
        self.published_since = published_since
        self.strict = strict
        self.deferrable = deferrable

    def execute(self, context: Any) -> None:
        """Wait, here or in the triggerer."""
        if not self.deferrable:
            super().execute(context)
        elif not self.poke(context):
            self.defer(
                trigger=PublishedTrigger(wanted_fields(self._wanted()), self.poke_interval),
                method_name=self.execute_complete.__name__,
                timeout=timedelta(seconds=self.timeout),
            )

    def execute_complete(self, context: Any, event: Any) -> None:
        """Be done: the trigger fires only when all are there."""
        del context, event

    def poke(self, context: Any) -> bool:
        """Look once; what a second look cannot mend fails the task for good."""
        del context
        try:
            waiting = self._wanted().waiting()
        except Transient as error:
            self.log.warning("%s", error)
            return False
        except SealbookError as error:
            raise AirflowFailException(f"{error} {error.remedy or ''}".strip()) from error
        if waiting:
            self.log.info("waiting for %d: %s", len(waiting), few(waiting))
        return not waiting

    def _wanted(self) -> Wanted:
        customers = (self.customers,) if isinstance(self.customers, str) else self.customers
        return Wanted(
            book=self.book,
            query_name=self.query_name,
            source=self.source,
            customers=None if customers is None else tuple(customers),
            since=self.since,
            until=self.until,
            published_since=self.published_since,
            strict=self.strict,
        )
