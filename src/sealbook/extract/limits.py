"""Limits of requests per second, by account and by source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sealbook.errors import InvalidInput

_BURST_SECONDS = 0.1
_SHORTEST_WAIT_SECONDS = 1e-6


class TokenBucket:
    """So many tokens per second, of which at most `burst` are saved up. Not thread-safe by itself."""

    def __init__(self, per_second: float, burst: float, now: float) -> None:
        """Start full."""
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._filled_at = now

    def wait(self, now: float) -> float:
        """Return the seconds until a token is there; 0 if one is."""
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        # After exactly the wait that it asked for, rounding may leave a bucket a hair short of a token: less
        # than a clock can show to pass.
        wait = (1.0 - self._tokens) / self._per_second
        return wait if wait > _SHORTEST_WAIT_SECONDS else 0.0

    def take(self) -> None:
        """Take a token that `wait` found to be there."""
        self._tokens -= 1.0


class RequestLimiter:
    """Holds each request back until both its account and its source may send one.

    The limits are meant for all processes together: each of `processes` gets an equal part of them.
    None is no limit. Safe to share between threads; share one in each process.
    """

    def __init__(
        self,
        *,
        requests_per_second: float | None = None,
        requests_per_second_per_customer: float | None = None,
        processes: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Refuse a limit that would let nothing through."""
        if processes < 1:
            raise InvalidInput.of("processes", processes, "a whole number from 1")
        self._per_second = _part("requests_per_second", requests_per_second, processes)
        self._per_second_per_customer = _part(
            "requests_per_second_per_customer", requests_per_second_per_customer, processes
        )
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._source_bucket = self._bucket(self._per_second)
        self._customer_buckets: dict[str, TokenBucket] = {}

    def acquire(self, customer_id: str) -> None:
        """Return when a request for this account may be sent; call it before each try."""
        while (wait := self._try_acquire(customer_id)) > 0.0:
            self._sleep(wait)

    def _try_acquire(self, customer_id: str) -> float:
        """Take from both buckets at once, or from neither and return the seconds until it is worth a try.

        Taking from one and then waiting for the other would let an account's requests pile up in front of
        the second bucket and leave it faster than the account's limit.
        """
        with self._lock:
            now = self._clock()
            buckets = [
                bucket for bucket in (self._source_bucket, self._customer_bucket(customer_id)) if bucket
            ]
            wait = max((bucket.wait(now) for bucket in buckets), default=0.0)
            if wait == 0.0:
                for bucket in buckets:
                    bucket.take()
            return wait

    def _customer_bucket(self, customer_id: str) -> TokenBucket | None:
        bucket = self._customer_buckets.get(customer_id)
        if bucket is None:
            bucket = self._bucket(self._per_second_per_customer)
            if bucket is not None:
                self._customer_buckets[customer_id] = bucket
        return bucket

    def _bucket(self, per_second: float | None) -> TokenBucket | None:
        if per_second is None:
            return None
        # A little may be saved up, or every late wake-up would be throughput lost; at least one token,
        # or none would ever be there.
        return TokenBucket(per_second, max(1.0, per_second * _BURST_SECONDS), self._clock())


def _part(name: str, limit: float | None, processes: int) -> float | None:
    if limit is None:
        return None
    if not limit > 0:
        raise InvalidInput.of(name, limit, "a number above 0, or none for no limit")
    return limit / processes
