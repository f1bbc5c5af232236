"""When versions of the Google Ads API end: their requests fail from that day on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from sealbook.extract.source import Remark, Urgency
from sealbook.model.words import counted

_STEPS = ((7, Urgency.NOW), (30, Urgency.NEXT), (90, Urgency.SOON))
"""How many days before the end it is how urgent."""
_TIMETABLE = "https://developers.google.com/google-ads/api/docs/sunset-dates"


class End(NamedTuple):
    """The day on which a version ends; the first of the month where only that was announced."""

    day: date
    exact: bool


ENDS: Mapping[str, End] = {
    "v20": End(date(2026, 6, 10), exact=True),
    "v21": End(date(2026, 8, 5), exact=True),
    "v22": End(date(2026, 10, 7), exact=True),
    "v23": End(date(2027, 2, 1), exact=False),
    "v24": End(date(2027, 5, 1), exact=False),
    "v25": End(date(2027, 8, 1), exact=False),
    "v26": End(date(2027, 11, 1), exact=False),
}
"""As announced by November 2026. A version that is not listed was not announced to end by then."""


def end_of(api_version: str, today: date) -> Remark | None:
    """Return what to say of a version that has ended or will within 90 days; the sooner, the more urgent."""
    end = ENDS.get(api_version)
    left = timedelta.max.days if end is None else (end.day - today).days
    urgency = next((urgency for days, urgency in _STEPS if left <= days), None)
    if end is None or urgency is None:
        return None
    when = f"on {end.day}" if end.exact else f"in {end.day:%B %Y}, as announced"
    said = f"ended {when}" if left <= 0 else f"ends {when}, in {counted(left, 'day')}"
    return Remark(
        f"API {api_version} {said}: every fetch by it fails from then on",
        "Set `api_version` in the catalogue to a later one; upgrade google-ads if it has none."
        f" The timetable is at {_TIMETABLE}.",
        urgency,
    )
