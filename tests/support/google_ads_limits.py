"""A local Google Ads server that enforces quotas of a sliding day, and the horizon of 37 months."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from tests.support.google_ads import Failure, GoogleAdsServer

PER_DAY = 15_000
HORIZON_MONTHS = 37
_DAY = timedelta(days=1)
_DATE = re.compile(r"'(\d{4}-\d{2}-\d{2})'")


class LimitedServer(GoogleAdsServer):
    """Answers so many operations in any 24 hours, of the Cloud project and of each account, by a given clock.

    Beyond them it names the scope, the rate, and the wait until an operation is old enough. Days that are
    more than 37 months ago are refused.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        per_project: int = PER_DAY,
        per_account: int = PER_DAY,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.clock = clock
        self._limits = {"DEVELOPER": per_project, "ACCOUNT": per_account}
        self._operations: deque[tuple[datetime, str]] = deque()
        self._counts: Counter[str] = Counter()

    def _search_stream(self, request: Any, context: Any) -> Iterator[bytes]:
        refusal = self._over_quota(request.customer_id) or self._past_horizon(request.query)
        if refusal is not None:
            self._fail(refusal, context)
        yield from super()._search_stream(request, context)

    def _over_quota(self, customer_id: str) -> Failure | None:
        with self._lock:
            now = self.clock()
            while self._operations and self._operations[0][0] <= now - _DAY:
                self._counts[self._operations.popleft()[1]] -= 1
            used = {"DEVELOPER": len(self._operations), "ACCOUNT": self._counts[customer_id]}
            for scope, limit in self._limits.items():
                if used[scope] >= limit:
                    mine = (at for at, own in self._operations if scope == "DEVELOPER" or own == customer_id)
                    return _quota_failure(scope, next(mine) + _DAY - now)
            self._operations.append((now, customer_id))
            self._counts[customer_id] += 1
            return None

    def _past_horizon(self, query: str) -> Failure | None:
        first = horizon(self.clock().date())
        if any(date.fromisoformat(day) < first for day in _DATE.findall(query)):
            return Failure("INVALID_ARGUMENT", [TOO_OLD])
        return None


TOO_OLD: Mapping[str, Any] = {
    "error_code": {"date_range_error": "REQUESTED_DATE_GRANULARITY_NOT_SUPPORTED"},
    "message": "Days are kept for 37 months.",
}


def horizon(today: date) -> date:
    """Return the first day that the server gives."""
    month = today.year * 12 + today.month - 1 - HORIZON_MONTHS
    return date(month // 12, month % 12 + 1, min(today.day, 28))


def _quota_failure(scope: str, wait: timedelta) -> Failure:
    details = {
        "rate_scope": scope,
        "rate_name": f"Operations per day for {'project' if scope == 'DEVELOPER' else 'account'}",
        "retry_delay": {"seconds": int(wait.total_seconds())},
    }
    error = {
        "error_code": {"quota_error": "RESOURCE_EXHAUSTED"},
        "message": "Too many requests.",
        "details": {"quota_error_details": details},
    }
    return Failure("RESOURCE_EXHAUSTED", [error])
