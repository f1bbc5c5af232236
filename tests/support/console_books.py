"""A book in which something of every kind has happened, without Spark; its texts are hostile."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import sealbook
from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import PartitionKey, RunEvent
from sealbook.model.selection import Selection
from tests.support.demo_books import write_demo_book
from tests.support.ledger import accept, reject
from tests.support.partitions import seal

MARKUP = """<script>alert("1")</script><img src=x onerror=alert(2)>'"&amp;{{7*7}}"""
"""What a page must show as the text that it is."""

_DAYS = (date(2026, 1, 1), date(2026, 1, 2))
GOOD, BAD = (PartitionKey("demo", "1001", "campaign_daily", day) for day in _DAYS)
FAILED, OTHER = (PartitionKey("demo", "1003", "campaign_daily", day) for day in _DAYS)


_ROW = {
    "campaign_id": 1, "campaign_name": MARKUP, "campaign_status": None, "segments_device": MARKUP,
    "segments_date": "2026-01-01", "metrics_impressions": 9, "metrics_conversions": 1.5,
    "metrics_cost_micros": 0,
}  # fmt: skip


def write_lively_book(folder: Path, **settings: Any) -> None:
    """Write a book with runs, verdicts, overrides, plans, pauses and cuts, each with a text of somebody's."""
    write_demo_book(folder, **settings)
    said: dict[str, Any] = {"actor": f"ann {MARKUP}", "reason": MARKUP}
    with sealbook.open(folder) as book:
        ledger = book.ledger
        run = ledger.open_run()
        ledger.run_store.append_event(RunEvent.new(run, "RunStarted"))
        ledger.run_store.append_event(RunEvent.new(run, "RunFailed", event_data={"error": MARKUP}))
        for number in (1, 2):
            seal(book, GOOD, number, [{**_ROW, "metrics_clicks": number}])
        ledger.judge([accept(GOOD), reject(BAD, error=MARKUP), reject(FAILED, error=MARKUP)])
        ledger.requeue([FAILED], **said)
        ledger.pointers.create_cut("month_end", note=MARKUP)
        operator = book.operator
        operator.pause(Scope("demo"), **said)
        plan = operator.backfill(Selection(keys=[OTHER]), name="old", **said).plan
        operator.carry_out(plan.id)
        operator.carry_out(operator.mark(Selection(keys=[BAD]), **said).plan.id)
        book.catch_up()
