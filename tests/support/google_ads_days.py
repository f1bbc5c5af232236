"""A local Google Ads server that has rows by account and day, and reads which of them a query asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tests.support.google_ads import Batch, Failure, GoogleAdsServer, Reply, Request

DAILY = (
    "SELECT campaign.id, segments.date, metrics.clicks FROM campaign WHERE segments.date = '{logical_date}'"
)
_SELECTED = re.compile(r"SELECT\s(.*?)\sFROM\s", re.DOTALL)
_DAYS = re.compile(
    r"segments\.date (?:= '(?P<day>[\d-]+)'|BETWEEN '(?P<first>[\d-]+)' AND '(?P<last>[\d-]+)')"
)
_IN_ORDER = re.compile(r"ORDER BY segments\.date\b")


def clicks(*numbers: int) -> list[dict[str, Any]]:
    """Return a campaign for each number, with so many clicks."""
    return [
        {"campaign": {"id": place}, "metrics": {"clicks": number}} for place, number in enumerate(numbers)
    ]


@dataclass
class Days:
    """What accounts have of each day, and where a stream ends by a failure."""

    rows: Mapping[tuple[str, date], Sequence[Mapping[str, Any]]]
    failures: dict[date, Failure] = field(default_factory=dict)
    """By day: a stream that comes to its rows has only half of them."""
    batch: int = 2
    """How many rows a message has."""

    def reply(self, request: Request) -> Reply:
        """Answer as Google Ads does: without an order unless told, and not without metrics if segmented."""
        found, selected = _DAYS.search(request.query), _SELECTED.search(request.query)
        assert found, request.query
        assert selected, request.query
        first, last = (date.fromisoformat(found["day"] or found[name]) for name in ("first", "last"))
        paths = [path.strip() for path in selected[1].split(",")]
        days = sorted(day for account, day in self.rows if account == request.customer_id)
        wanted = [day for day in days if first <= day <= last]
        if _IN_ORDER.search(request.query) is None:
            wanted.reverse()
        return list(self._steps(request.customer_id, wanted, paths))

    def _steps(
        self, customer_id: str, days: Sequence[date], paths: Sequence[str]
    ) -> Iterator[Batch | Failure]:
        rows: list[Mapping[str, Any]] = []
        failure = None
        for day in days:
            own = [
                {**row, "segments": {"date": day.isoformat()}}
                for row in self.rows[customer_id, day]
                if "segments.date" not in paths or any(row["metrics"].values())
            ]
            failure = self.failures.get(day)
            rows += own if failure is None else own[: len(own) // 2]
            if failure is not None:
                break
        for begin in range(0, len(rows), self.batch):
            yield Batch(paths, rows[begin : begin + self.batch])
        if failure is not None:
            yield failure


class DaysServer(GoogleAdsServer):
    """Answers each SearchStream with the rows of the days that it asks for."""

    def __init__(self, days: Days, **options: Any) -> None:
        """Prepare a server that has these days."""
        super().__init__(**options)
        self.days = days

    def _reply_to(self, request: Request) -> list[bytes | Failure]:
        return self._encode(self.days.reply(request))
