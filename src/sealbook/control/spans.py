"""The days that a backfill is asked for, account by account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import NamedTuple

from sealbook.config import SourceSettings, configured
from sealbook.errors import ConfigError, InvalidInput, PastHorizon
from sealbook.model.horizons import Horizons
from sealbook.model.selection import Selection
from sealbook.model.universe import Span


class Wanted(NamedTuple):
    """Spans of days that can be fetched, how many are not over yet, and how many are past the horizon."""

    spans: tuple[Span, ...]
    not_over: int
    past_horizon: int


def spans_of(
    sources: Mapping[str, SourceSettings], selection: Selection, now: datetime, horizons: Horizons
) -> Wanted:
    """Return what is chosen; ConfigError for what is not configured, or has no such day.

    A key that is past the horizon of its source is refused.
    """
    for key in selection.keys:
        if horizons.is_past(key):
            raise PastHorizon(f"{key}: {horizons.why(key.source)}", remedy="Choose later days.")
    if selection.is_everything or (not selection.keys and None in (selection.since, selection.until)):
        raise InvalidInput(
            "there is no telling which days to backfill",
            field="since",
            remedy="Give --since and --until, or --day, or name partitions.",
        )
    asked = [span for part in configured(sources, selection) for span in _asked(part)]
    had = [days for span in asked if (days := _had(sources, span)) is not None]
    if not had:
        raise ConfigError(
            "no account that is chosen has such a day",
            remedy="Choose other days, or correct first_day and last_day in the settings.",
        )
    over = [days for span in had if (days := _over(sources, span, now)) is not None]
    given = [days for span in over if (days := _given(horizons, span)) is not None]
    return Wanted(tuple(given), _days(had) - _days(over), _days(over) - _days(given))


def _days(spans: Iterable[Span]) -> int:
    return sum(span.days for span in spans)


def _given(horizons: Horizons, span: Span) -> Span | None:
    first = max(span.first, horizons.first_days.get(span.source, span.first))
    return None if span.last < first else span._replace(first=first)


def _asked(part: Selection) -> Iterator[Span]:
    for key in sorted({*part.keys}):
        yield Span(key.source, key.customer_id, key.query_name, key.logical_date, key.logical_date)
    if not part.keys:
        for name in product(part.source or (), part.customers or (), part.queries or ()):
            yield Span(*name, *part.span())


def _had(sources: Mapping[str, SourceSettings], span: Span) -> Span | None:
    account = sources[span.source].accounts.get(span.customer_id)
    days = None if account is None else account.within(span.first, span.last)
    return None if days is None else span._replace(first=days[0], last=days[1])


def _over(sources: Mapping[str, SourceSettings], span: Span, now: datetime) -> Span | None:
    last = min(span.last, sources[span.source].accounts[span.customer_id].last_over(now))
    return None if last < span.first else span._replace(last=last)
