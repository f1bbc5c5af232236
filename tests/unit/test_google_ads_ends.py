"""Versions of the Google Ads API that ended, or will soon, are told with the way out."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from sealbook.extract.source import Urgency
from sealbook.extract.sources.google_ads_client import api_versions
from sealbook.extract.sources.google_ads_ends import ENDS, end_of


@pytest.mark.parametrize(
    ("version", "today", "said"),
    [
        ("v22", date(2026, 10, 7), "API v22 ended on 2026-10-07"),
        ("v22", date(2026, 10, 6), "API v22 ends on 2026-10-07"),
        ("v23", date(2026, 11, 3), "API v23 ends in February 2027"),
        ("v23", date(2027, 2, 1), "API v23 ended in February 2027"),
    ],
)
def test_what_ends_is_told_three_months_before(version: str, today: date, said: str) -> None:
    remark = end_of(version, today)
    assert remark is not None
    assert remark.text.startswith(said)
    assert remark.remedy is not None


@pytest.mark.parametrize(
    ("days", "urgency"),
    [
        (91, None), (90, Urgency.SOON), (31, Urgency.SOON), (30, Urgency.NEXT), (8, Urgency.NEXT),
        (7, Urgency.NOW), (0, Urgency.NOW), (-400, Urgency.NOW),
    ],
)  # fmt: skip
def test_it_gets_more_urgent_90_30_and_7_days_before(days: int, urgency: Urgency | None) -> None:
    remark = end_of("v26", ENDS["v26"].day - timedelta(days=days))
    assert (None if remark is None else remark.urgency) == urgency
    assert list(Urgency) == sorted(Urgency)


@pytest.mark.parametrize(("version", "today"), [("v23", date(2026, 11, 2)), ("v99", date(2030, 1, 1))])
def test_of_others_nothing_is_said(version: str, today: date) -> None:
    assert end_of(version, today) is None


def test_every_version_of_the_installed_client_is_in_the_table() -> None:
    """An upgrade of the client brings versions whose ends are announced by then: add them."""
    assert set(api_versions()) <= set(ENDS)


def test_later_versions_end_later() -> None:
    assert list(ENDS) == sorted(ENDS)
    assert [end.day for end in ENDS.values()] == sorted(end.day for end in ENDS.values())
