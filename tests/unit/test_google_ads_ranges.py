"""The text of a query for several days, where each gets the rows that it would get alone."""

from __future__ import annotations

from datetime import date

import pytest

from sealbook.extract.sources.google_ads_ranges import bind_range

BETWEEN = "segments.date BETWEEN '2026-01-01' AND '2026-01-31'"
SELECT = "SELECT campaign.id, segments.date FROM campaign WHERE"


def bound(text: str) -> str | None:
    return bind_range(text, date(2026, 1, 1), date(2026, 1, 31))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{SELECT} segments.date = '{{logical_date}}'", f"{SELECT} {BETWEEN} ORDER BY segments.date"),
        (f'{SELECT} segments.date="{{logical_date}}"', f"{SELECT} {BETWEEN} ORDER BY segments.date"),
        (
            "select a.c,\n  segments.date\nfrom a\nwhere segments.date = '{logical_date}'\nand a.b > 0\n",
            f"select a.c,\n  segments.date\nfrom a\nwhere {BETWEEN}\nand a.b > 0 ORDER BY segments.date\n",
        ),
        (
            f"{SELECT} segments.date = '{{logical_date}}' ORDER BY metrics.clicks DESC, campaign.id",
            f"{SELECT} {BETWEEN} ORDER BY segments.date, metrics.clicks DESC, campaign.id",
        ),
        (
            f"{SELECT} segments.date = '{{logical_date}}' PARAMETERS a=true",
            f"{SELECT} {BETWEEN} ORDER BY segments.date PARAMETERS a=true",
        ),
        (
            f"{SELECT} segments.date = '{{logical_date}}' order by campaign.id PARAMETERS a=true",
            f"{SELECT} {BETWEEN} order by segments.date, campaign.id PARAMETERS a=true",
        ),
        (
            f"{SELECT} campaign.name = ' ORDER BY x LIMIT 5 \\' ' AND segments.date = '{{logical_date}}'",
            f"{SELECT} campaign.name = ' ORDER BY x LIMIT 5 \\' ' AND {BETWEEN} ORDER BY segments.date",
        ),
    ],
)
def test_the_days_go_where_the_day_was_and_come_in_order(text: str, expected: str) -> None:
    assert bound(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}'",
        "SELECT campaign.id, segments.date_range FROM campaign WHERE segments.date = '{logical_date}'",
        f"{SELECT} segments.date = '{{logical_date}}' LIMIT 10",
        f"{SELECT} segments.date = '{{logical_date}}' ORDER BY campaign.id\nLIMIT 10",
        f"{SELECT} segments.date = '{{logical_date}}' ORDER BY segments.date DESC",
        f"{SELECT} segments.date >= '{{logical_date}}'",
        f"{SELECT} segments.date = {{logical_date}}",
        f"{SELECT} segments.date BETWEEN '{{logical_date}}' AND '{{logical_date}}'",
        f"{SELECT} segments.date = '{{logical_date}}' AND segments.week = '{{logical_date}}'",
        f"{SELECT} my_segments.date = '{{logical_date}}'",
        f"{SELECT} campaign.name = \"segments.date = '{{logical_date}}'\"",
        "SELECT click_view.gclid, segments.date FROM click_view WHERE segments.date = '{logical_date}'",
        "SELECT segments.date FROM campaign",
        "segments.date = '{logical_date}'",
    ],
)
def test_other_texts_are_asked_for_day_by_day(text: str) -> None:
    assert bound(text) is None
