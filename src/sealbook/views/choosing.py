"""Which partitions are meant, as people write it: in the options of a command, in the address of a page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.keys import normalise_customer_id, parse_date
from sealbook.model.selection import Selection
from sealbook.model.spans import parse_span

Word = TypeVar("Word", bound=StrEnum)

TIME_FORM = "a day or a time in UTC, such as 2026-01-31 or 2026-01-31T06:00"


def parse_key(text: str) -> PartitionKey:
    """Read a key as a person types it: its customer id may have hyphens."""
    parts = text.split("/")
    return PartitionKey.parse("/".join([*parts[:1], *map(normalise_customer_id, parts[1:2]), *parts[2:]]))


def day_of(word: str) -> date | None:
    """Return the day that a word means now; None if it is no such word."""
    days_ago = {"today": 0, "yesterday": 1}.get(word)
    return None if days_ago is None else utc_now().date() - timedelta(days=days_ago)


def parse_time(field: str, text: str) -> datetime:
    """Read a day or a time; one without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput.of(field, text, TIME_FORM) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_end(field: str, text: str) -> datetime:
    """Read when something ends: after a span from now, or at a time, which is UTC where it does not say."""
    try:
        return parse_time(field, text)
    except InvalidInput:
        pass
    try:
        return utc_now() + parse_span(field, text)
    except InvalidInput:
        raise InvalidInput.of(
            field, text, "a span such as 2h or 3d, or a time such as 2026-01-31T06:00Z"
        ) from None


def words_of(field: str, texts: Iterable[str], kind: type[Word]) -> list[Word]:
    """Read words of which there are but a few."""
    words = {each.value: each for each in kind}
    given = list(texts)
    for text in given:
        if text not in words:
            raise InvalidInput.of(field, text, f"one of {', '.join(words)}")
    return [words[text] for text in given]


def selection_of(
    *,
    keys: Iterable[str] | None = None,
    query: str | None = None,
    queries: Iterable[str] | None = None,
    customers: Iterable[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    day: str | None = None,
    lookback: int | None = None,
    **others: Any,
) -> Selection:
    """Read what was typed, as the model refuses it or takes it."""
    first, last = _span(since, until, day, lookback)
    named = [*([] if query is None else [query]), *(queries or ())]
    return Selection(
        keys=map(parse_key, keys or ()),
        customers=[normalise_customer_id(each) for each in customers or ()] or None,
        queries=named or None,
        since=first,
        until=last,
        **{name: values or None for name, values in others.items()},
    )


def _span(
    since: str | None, until: str | None, day: str | None, lookback: int | None
) -> tuple[date | None, date | None]:
    if day is None:
        if lookback is not None:
            raise InvalidInput(
                "there is no day to look back from", field="lookback", remedy="Give --day as well."
            )
        return (
            None if since is None else _day("since", since),
            None if until is None else _day("until", until),
        )
    if since is not None or until is not None:
        raise InvalidInput(
            "a day and a span of days are given", field="day", remedy="Give --day, or --since and --until."
        )
    last = _day("day", day)
    try:
        return last - timedelta(days=(lookback or 1) - 1), last
    except OverflowError:
        raise InvalidInput.of("lookback", lookback, f"a number of days up to {last}") from None


def _day(field: str, text: str) -> date:
    return day_of(text) or parse_date(field, text)
