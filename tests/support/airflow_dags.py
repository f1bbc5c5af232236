"""DAGs for a real Airflow, which finds them in its folder; `SEALBOOK_TEST_BOOK` is the folder of the book."""

from __future__ import annotations

import os
from typing import Any

from airflow.sdk import DAG

import sealbook
from sealbook.airflow import PublishedSensor, RunOperator

BOOK = os.environ["SEALBOOK_TEST_BOOK"]
FIRST, SECOND = "2026-01-01", "2026-01-02"
QUERY = "campaign_daily"


class OvertakenSensor(PublishedSensor):
    """A sensor that has found nothing; before it waits in the triggerer, somebody publishes the day."""

    def defer(self, **kwargs: Any) -> None:
        """Publish what is waited for, and wait."""
        with sealbook.open(self.book) as book:
            book.run(sealbook.Selection(customers="1001", since=SECOND, until=SECOND))
        self.log.info("deferred: %s", kwargs["trigger"])
        super().defer(**kwargs)


def wait(task_id: str, day: str, **more: Any) -> PublishedSensor:
    """Return a sensor for a day of one account."""
    kind: type[PublishedSensor] = more.pop("kind", PublishedSensor)
    options = {"query_name": QUERY, "customers": ["1001"], "poke_interval": 0.2, "timeout": 60, **more}
    return kind(task_id=task_id, book=BOOK, since=day, until=day, **options)


with DAG("overtaken", schedule=None):
    wait("wait", "{{ '2026-01-02' }}", kind=OvertakenSensor, deferrable=True)

with DAG("unknown_query", schedule=None):
    wait("wait", FIRST, query_name="nonsense", retries=3)

with DAG("rejected_day", schedule=None):
    RunOperator(task_id="run", book=BOOK, customers=["1003"], since=SECOND, until=SECOND)
