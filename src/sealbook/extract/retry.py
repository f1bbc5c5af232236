"""Retries inside a fetch: for failures that pass within minutes. Longer waits are the control plane's."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sealbook.errors import InvalidInput, Transient

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a fetch is tried, and how long the waits between its tries may be.

    The wait before try n+1 is drawn evenly from 0 to `base_seconds` doubled n-1 times, at most `cap_seconds`:
    full jitter, so that many threads that failed together do not come back together.
    """

    tries: int = 5
    base_seconds: float = 1.0
    cap_seconds: float = 60.0
    longest_delay_seconds: float = 120.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise InvalidInput.of("tries", self.tries, "a whole number from 1")
        for name in ("base_seconds", "cap_seconds", "longest_delay_seconds"):
            if getattr(self, name) < 0:
                raise InvalidInput.of(name, getattr(self, name), "a number of seconds from 0")

    def wait(self, failure: Transient, tried: int, draw: float) -> float | None:
        """Return the seconds to wait after the given number of tries, or None to give up.

        A delay that the server asks for is waited in full, the jitter on top. One above
        `longest_delay_seconds` is not waited for here: the failure goes to the control plane, which can
        pause the lane without holding a thread.
        """
        if tried >= self.tries:
            return None
        asked = failure.retry_after
        if asked is not None and asked > self.longest_delay_seconds:
            return None
        # Beyond 2**32 any cap has long been reached; a float would overflow at 2**1024.
        doubled = self.base_seconds * 2.0 ** min(tried - 1, 32)
        return (asked or 0.0) + draw * min(self.cap_seconds, doubled)


def with_retries(
    work: Callable[[], _Result],
    policy: RetryPolicy,
    *,
    on_retry: Callable[[Transient, float], None] | None = None,
    sleep: Callable[[float], object] = time.sleep,
    draw: Callable[[], float] = random.random,
) -> _Result:
    """Call `work` until it returns; of its failures only Transient ones are retried, as the policy says.

    `work` is a whole try: ask the limiter, fetch, and write from the first row. A stream that broke in the
    middle has no way to go on, so nothing smaller can be retried. `on_retry` is told of each failure that is
    waited for, and of the wait; `draw` gives a number from 0 to 1.
    """
    tried = 0
    while True:
        try:
            return work()
        except Transient as failure:
            tried += 1
            wait = policy.wait(failure, tried, draw())
            if wait is None:
                raise
            if on_retry is not None:
                on_retry(failure, wait)
        sleep(wait)
