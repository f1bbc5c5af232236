"""Finds before anything starts what would fail in every partition: an unknown source, no credentials."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date

from sealbook.clock import utc_now
from sealbook.config import SourceSettings
from sealbook.config.documents import Step, error_in
from sealbook.errors import ConfigError, SealbookError, Transient, first_line
from sealbook.extract.ranges import NotRanged, Ranges
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import (
    BadOption,
    Checkable,
    Examinable,
    Forewarning,
    Remark,
    UnknownSource,
    load_source,
)
from sealbook.model.selection import Selection

_LOG = logging.getLogger(__name__)
_RETRY = RetryPolicy(tries=3, base_seconds=0.5, cap_seconds=2.0)
"""Rides out a server that grants access and hiccups, and still answers a person within seconds."""


def check_sources(sources: Mapping[str, SourceSettings], parts: Iterable[Selection]) -> list[Remark]:
    """Refuse to begin with a source that does not exist or could fetch nothing: a ConfigError, said once.

    Returns what they warn of, for `log_remarks`.
    """
    wanted: dict[str, set[str]] = {}
    for part in parts:
        for key in part.keys:
            wanted.setdefault(key.source, set()).add(key.query_name)
        for name in part.source or ():
            wanted.setdefault(name, set()).update(part.queries or ())
    return [remark for name, queries in wanted.items() for remark in _check(sources[name], queries)]


def log_remarks(remarks: Iterable[Remark]) -> None:
    """Say in the log what sources warn of: once for a run or a loop, when it begins."""
    for remark in remarks:
        _LOG.log(remark.urgency, " ".join(filter(None, (f"{remark.text}.", remark.remedy))))


def _check(settings: SourceSettings, wanted: set[str]) -> list[Remark]:
    with located(settings):
        source = load_source(settings.type, settings.options)
        Ranges(settings, source)
        queries = [query for name, query in settings.queries.items() if name in wanted]
        if isinstance(source, Checkable):
            with_retries(lambda: source.check(queries), _RETRY)
        return [*source.forewarn(queries, utc_now().date())] if isinstance(source, Forewarning) else []


def examine_source(settings: SourceSettings, today: date) -> list[Remark]:
    """Return what a source says of itself, by something cheap that it asks its server; raises as a check."""
    with located(settings):
        source = load_source(settings.type, settings.options)
        if not isinstance(source, Examinable):
            return []
        queries = list(settings.queries.values())
        return list(with_retries(lambda: source.examine(queries, today), _RETRY))


@contextmanager
def located(settings: SourceSettings) -> Iterator[None]:
    """Name the source in what is wrong with it, and the line of the settings if it is wrong there."""
    try:
        yield
    except Transient:
        raise
    except Exception as error:  # a source is foreign code: whatever it raises, the user hears of it
        remedy = error.remedy if isinstance(error, SealbookError) else None
        path = _path(settings, error)
        if path is None:
            raise ConfigError(f"source {settings.name}: {_said(error)}", remedy=remedy) from error
        raise error_in(settings.file, path, _said(error), remedy=remedy) from error


def _path(settings: SourceSettings, error: Exception) -> tuple[Step, ...] | None:
    """Return which field of the settings an error is about, if it is about one."""
    source = ("sources", settings.name)
    match error:
        case UnknownSource():
            return source if settings.type == settings.name else (*source, "type")
        case BadOption():
            return (*source, "options", *error.path)
        case NotRanged():
            return (*source, "days_per_request")
    return None


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, SealbookError) else f"{type(error).__name__}: {first_line(error)}"
