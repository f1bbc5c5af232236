"""Quotas that a source said are used up: a worker asks for nothing of their scope until their time."""

from __future__ import annotations

import time
from collections.abc import Callable

from sealbook.errors import QuotaExceeded, QuotaScope
from sealbook.model import PartitionKey

_WHOLE_SOURCE = None


class UsedUpQuotas:
    """What one task has learnt of a source's quotas, for its threads. Further requests would be in vain."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: dict[str | None, float] = {}

    def learn(self, key: PartitionKey, failure: QuotaExceeded) -> None:
        """Take note of a quota that is used up; one without a time may be there again at the next request."""
        if failure.retry_after:
            account = _WHOLE_SOURCE if failure.scope is QuotaScope.SOURCE else key.customer_id
            self._until[account] = max(self._now() + failure.retry_after, self._until.get(account, 0.0))

    def check(self, key: PartitionKey) -> None:
        """Fail as the source would, with the wait that is left, if a quota of the partition is used up."""
        for account, scope in ((_WHOLE_SOURCE, QuotaScope.SOURCE), (key.customer_id, QuotaScope.ACCOUNT)):
            left = self._until.get(account, 0.0) - self._now()
            if left > 0:
                raise QuotaExceeded(
                    f"{key}: not asked for, as the quota of its {scope} is used up",
                    scope=scope,
                    retry_after=left,
                )
