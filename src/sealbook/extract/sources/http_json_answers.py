"""What an answer of an HTTP API means: rows, none, or a failure by its class (R-CTL-7)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime

from sealbook.errors import Permanent, QuotaExceeded, QuotaScope, SealbookError, Transient
from sealbook.extract.sources.http_json_client import Answer
from sealbook.extract.sources.http_json_options import RateLimit, Statuses

_TRANSIENT = frozenset({408, 425, *range(500, 600)})
_QUOTA = 429
_FORBIDDEN = 403
_REFUSED = frozenset({401, 403, 407})
_A_DATE = 1_000_000_000
"""A number of seconds from here on is since 1970, and not from now."""
_IN_MILLISECONDS = 100_000_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads answers by what the options say of them."""

    statuses: Statuses
    rate_limit: RateLimit
    quota_scope: QuotaScope
    now: Callable[[], float] = time.time

    def is_empty(self, answer: Answer) -> bool:
        """Say whether an answer says that there are no rows."""
        return answer.status == 204 or answer.status in self.statuses.empty

    def failure(self, answer: Answer, what: str) -> SealbookError | None:
        """Return what is wrong, as an error to raise; None if nothing is."""
        status, said = answer.status, f"{what} was answered by {answer.status}"
        given = self.statuses
        if status in given.quota or (status == _QUOTA and status not in given.transient + given.permanent):
            return self._quota(answer, said)
        if status in given.transient:
            return Transient(said, retry_after=self._asked_for(answer.headers))
        if status in given.permanent:
            return Permanent(said)
        if 200 <= status < 300 or self.is_empty(answer):
            return None
        if status == _FORBIDDEN and self._remaining(answer.headers) == 0:
            return self._quota(answer, said)
        if status in _TRANSIENT:
            return Transient(said, retry_after=self._asked_for(answer.headers))
        if status in _REFUSED:
            return Permanent(said, remedy="Check the credentials, and what they permit.")
        return Permanent(said, remedy="Check the path and the parameters of the query.")

    def wait(self, answer: Answer) -> float:
        """Return the seconds until another request makes sense: 0 unless the answer used a quota up."""
        if self._remaining(answer.headers) != 0:
            return 0.0
        return self._until_reset(answer.headers) or 0.0

    def _quota(self, answer: Answer, said: str) -> QuotaExceeded:
        return QuotaExceeded(
            f"{said}: a quota is used up",
            scope=self.quota_scope,
            retry_after=self._asked_for(answer.headers) or self._until_reset(answer.headers),
        )

    def _remaining(self, headers: Message) -> float | None:
        return _number(headers.get(self.rate_limit.remaining))

    def _until_reset(self, headers: Message) -> float | None:
        seconds = _number(headers.get(self.rate_limit.reset))
        if seconds is None or seconds < _A_DATE:
            return seconds
        if seconds >= _IN_MILLISECONDS:
            seconds /= 1000
        return max(0.0, seconds - self.now())

    def _asked_for(self, headers: Message) -> float | None:
        """Return the wait that the server asks for: seconds, or until a date."""
        text = headers.get(self.rate_limit.retry_after)
        seconds = _number(text)
        if text is None or seconds is not None:
            return seconds
        try:
            date = parsedate_to_datetime(text)
        except ValueError:  # neither: as if nothing was asked for
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - self.now())


def _number(text: str | None) -> float | None:
    """Return a number from 0 on; None if the text is none."""
    text = (text or "").strip()
    whole, _, fraction = text.partition(".")
    is_number = len(text) < 20 and whole.isdecimal() and text.isascii() and (fraction or "0").isdecimal()
    return float(text) if is_number else None
