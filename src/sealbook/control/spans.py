"""The days that a backfill is asked for, account by account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import NamedTuple

from sealbook.config import SourceSettings, configured
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.selection import Selection
from sealbook.model.universe import Span


class Wanted(NamedTuple):
    """Spans of days that accounts have and that are over, and how many days are not over yet."""

    spans: tuple[Span, ...]
    not_over: int


def spans_of(sources: Mapping[str, SourceSettings], selection: Selection, now: datetime) -> Wanted:
    """Return what is chosen; ConfigError for what is not configured, or has no such day."""
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
    return Wanted(tuple(over), sum(span.days for span in had) - sum(span.days for span in over))


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
