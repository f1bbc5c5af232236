"""Identity: which slice (PartitionKey), and which execution attempt of it (RunId)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

from sealbook.errors import InvalidInput

GOOGLE_ADS = "google_ads"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_CUSTOMER_ID = re.compile(r"[0-9A-Za-z_]{1,64}")
_GOOGLE_ADS_CUSTOMER_ID = re.compile(r"[0-9]{10}")
_HYPHENATED_CUSTOMER_ID = re.compile(r"([0-9]{3})-([0-9]{3})-([0-9]{4})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TOLERANCE = timedelta(minutes=5)
"""How far ahead of the ledger's clock a run may have been opened elsewhere (R-RUN-2)."""


@dataclass(frozen=True, slots=True, order=True)
class PartitionKey:
    """A logical partition: one source, customer, query and UTC day (R-KEY-1)."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date

    def __post_init__(self) -> None:
        check_name("source", self.source)
        check_customer_id(self.source, self.customer_id)
        check_name("query_name", self.query_name)
        check_date("logical_date", self.logical_date)

    @classmethod
    def parse(cls, text: str) -> PartitionKey:
        """Read the text form, `google_ads/1234567890/campaign_daily/2026-01-01`; hyphens of a customer go."""
        parts = text.split("/") if isinstance(text, str) else []
        if len(parts) != 4:
            raise InvalidInput.of("partition key", text, "source/customer_id/query_name/YYYY-MM-DD")
        source, customer_id, query_name, day = parts
        return cls(source, normalise_customer_id(customer_id), query_name, parse_date("logical_date", day))

    def __str__(self) -> str:
        return f"{self.source}/{self.customer_id}/{self.query_name}/{self.logical_date.isoformat()}"


class RunId(str):
    """A ULID: 26 characters of upper-case Crockford base 32, whose text order is time order (R-RUN-1)."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check the text."""
        if not isinstance(text, str) or _ULID.fullmatch(text) is None:
            raise InvalidInput.of("run_id", text, "a ULID such as 01J8ZQ6T5N8W3Y2V7R4K9M0XCE, upper case")
        return super().__new__(cls, text)


def newest_run_prefix(now: datetime) -> str:
    """Return how the newest run id begins that is not from the future: its ten characters of time."""
    return run_prefix(now + TOLERANCE)


def run_prefix(moment: datetime) -> str:
    """Return how the ids of runs begin that were opened at a moment: their ten characters of time."""
    left = (moment - _EPOCH) // timedelta(milliseconds=1)
    digits = []
    for _ in range(10):
        left, digit = divmod(left, len(_CROCKFORD))
        digits.append(_CROCKFORD[digit])
    return "".join(reversed(digits))


def run_time(run_id: RunId) -> datetime:
    """Return when a run was opened, as its id says."""
    milliseconds = 0
    for digit in run_id[:10]:
        milliseconds = len(_CROCKFORD) * milliseconds + _CROCKFORD.index(digit)
    return _EPOCH + timedelta(milliseconds=milliseconds)


def is_ahead(run_id: str, now: datetime) -> bool:
    """Say whether a run id is from the future: more than some minutes ahead of the ledger's clock.

    One of another engine that is no ULID tells no time.
    """
    return _ULID.fullmatch(run_id) is not None and run_id[:10] > newest_run_prefix(now)


def refuse_ahead(run_id: str, now: datetime) -> None:
    """Refuse a run id from the future, by name: it would keep authority from every later run (R-RUN-2)."""
    if is_ahead(run_id, now):
        raise InvalidInput(why_ahead(run_id), field="run_id", value=run_id, remedy=AHEAD_REMEDY)


def why_ahead(run_id: str) -> str:
    """Say that a run id is from the future."""
    minutes = TOLERANCE // timedelta(minutes=1)
    return (
        f"run {run_id} is from the future: its id is more than {minutes} minutes ahead of the ledger's clock"
    )


AHEAD_REMEDY = (
    "Set the clock right of the machine that made it, and fetch the partition again without --run-id:"
    " the ledger then opens the run."
)
SEALED_AHEAD_REMEDY = (
    f"{AHEAD_REMEDY} Then delete the directory of this run from the raw store: nothing refers to it, and it"
    " is named as long as it is there."
)
"""What to do about a run from the future that was sealed, and that nobody has judged."""


def check_key(value: object) -> None:
    """Refuse anything but a PartitionKey, above all its text form."""
    if not isinstance(value, PartitionKey):
        raise InvalidInput.of("key", value, "a PartitionKey")


def check_name(field: str, value: object) -> None:
    """Refuse anything but the form of `source` and `query_name` (R-KEY-2)."""
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise InvalidInput.of(field, value, "a lower-case letter, then at most 62 of a-z, 0-9 and _")


def check_customer_id(source: str, value: object) -> None:
    """Refuse anything but a canonical customer id of that source (R-KEY-2)."""
    if source == GOOGLE_ADS:
        if not isinstance(value, str) or _GOOGLE_ADS_CUSTOMER_ID.fullmatch(value) is None:
            raise InvalidInput.of("customer_id", value, "exactly ten digits for google_ads, no hyphens")
    elif not isinstance(value, str) or _CUSTOMER_ID.fullmatch(value) is None:
        raise InvalidInput.of("customer_id", value, "1 to 64 of 0-9, A-Z, a-z and _")


def check_date(field: str, value: object) -> None:
    """Refuse anything but a calendar day."""
    # A datetime is a date to isinstance; as a key it would smuggle in a time of day.
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidInput.of(field, value, "a datetime.date")


def normalise_customer_id(text: str) -> str:
    """Turn `123-456-7890` into `1234567890` and leave all else alone; for the edge only (R-KEY-2)."""
    match = _HYPHENATED_CUSTOMER_ID.fullmatch(text)
    return "".join(match.groups()) if match else text


def parse_date(field: str, text: object) -> date:
    """Read a calendar day in the one accepted form, YYYY-MM-DD."""
    # date.fromisoformat alone would also take 20260101 and 2026-W01-4.
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise InvalidInput.of(field, text, "a calendar day, YYYY-MM-DD")
