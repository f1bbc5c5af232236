"""A source's budget of requests for any 24 hours, and what of it each lane may spend (R-CTL-10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from sealbook.errors import InvalidInput
from sealbook.model.shares import DEFAULT_SHARES
from sealbook.model.work import Lane

WINDOW = 86_400
"""Seconds that a request counts."""
BUCKET = 300
"""Seconds that are counted together: all of them count until the last has left the window."""

_UNFORESEEN = 5
"""One part in so many of a share is kept for what nobody expects, such as the failures to come."""


class Budget:
    """The requests of one source: reserved before they are sent, then spent or given back. Times in seconds.

    What is reserved counts until it is settled, and what is spent from then on for 24 hours: a request is
    sent in between, so no 24 hours have more than the limit, however long its sender takes.

    A lane has its share for itself, as far as it will ask for it within a day (`expect`; all of it, until
    somebody knows better), and a fifth of it in any case. The others borrow the rest and no more: what is
    lent is gone for a day. Where too much was lent, fresh work has what is left, then the next lane.
    """

    def __init__(self, limit: int, shares: Mapping[Lane, int] = DEFAULT_SHARES) -> None:
        """Take the requests that may be sent in any 24 hours, and the shares of lanes."""
        if limit < 0:
            raise InvalidInput.of("requests_per_day", limit, "a whole number from 0")
        total = sum(shares.values())
        self.limit = limit
        self._shares = {lane: limit * shares[lane] // total for lane in Lane}
        self._expected = dict.fromkeys(Lane, limit)
        self._used = dict.fromkeys(Lane, 0)
        """Reserved and spent."""
        self._total = 0
        self._spent: deque[tuple[int, Lane, int]] = deque()
        """By bucket, oldest first."""

    def expect(self, lane: Lane, requests: int) -> None:
        """Note how many requests a lane will still ask for within a day: what is open and what is coming."""
        self._expected[lane] = requests

    def room(self, lane: Lane, at: int) -> int:
        """Return how many requests a lane may reserve."""
        self._forget(at)
        left = self.limit - self._total
        if left <= 0:
            return 0
        before = other = own = 0
        for each, expected in self._expected.items():
            share, used = self._shares[each], self._used[each]
            kept = max(min(expected, share - used), share // _UNFORESEEN - used, 0)
            if each is lane:
                before, own = other, kept
            else:
                other += kept
        # What was lent before more was expected is missing now: to the lanes that come last.
        return max(min(left - before, max(own, left - other)), 0)

    def reserve(self, lane: Lane, requests: int) -> None:
        """Set requests aside; ask for `room` first."""
        self._used[lane] += requests
        self._total += requests
        self._expected[lane] = max(self._expected[lane] - requests, 0)

    def settle(self, lane: Lane, reserved: int, spent: int, at: int) -> None:
        """Give back what was reserved and not spent; what nobody knows of, after a crash, was spent."""
        self._used[lane] += spent - reserved
        self._total += spent - reserved
        bucket = max(at // BUCKET, self._spent[-1][0] if self._spent else 0)  # no clock makes it older
        if self._spent and self._spent[-1][:2] == (bucket, lane):
            spent += self._spent.pop()[2]
        self._spent.append((bucket, lane, spent))

    def opens_at(self) -> int | None:
        """Return when something that was spent leaves the window next; None if nothing is known to."""
        return None if not self._spent else (self._spent[0][0] + 1) * BUCKET + WINDOW

    @property
    def used(self) -> Mapping[Lane, int]:
        """What lanes have reserved, and have spent within the last 24 hours as of the last question."""
        return self._used

    def _forget(self, at: int) -> None:
        while self._spent and (self._spent[0][0] + 1) * BUCKET + WINDOW <= at:
            _, lane, spent = self._spent.popleft()
            self._used[lane] -= spent
            self._total -= spent
