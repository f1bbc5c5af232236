"""Finds before anything starts what would fail in every partition: an unknown source, no credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date

from sealbook.config import SourceSettings
from sealbook.config.documents import Step, error_in
from sealbook.errors import ConfigError, SealbookError, Transient, first_line
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import BadOption, Checkable, Examinable, Remark, UnknownSource, load_source
from sealbook.model.selection import Selection

_RETRY = RetryPolicy(tries=3, base_seconds=0.5, cap_seconds=2.0)
"""Rides out a server that grants access and hiccups, and still answers a person within seconds."""


def check_sources(sources: Mapping[str, SourceSettings], parts: Iterable[Selection]) -> None:
    """Refuse to begin with a source that does not exist or could fetch nothing: a ConfigError, said once."""
    wanted: dict[str, set[str]] = {}
    for part in parts:
        for key in part.keys:
            wanted.setdefault(key.source, set()).add(key.query_name)
        for name in part.source or ():
            wanted.setdefault(name, set()).update(part.queries or ())
    for name, queries in wanted.items():
        _check(sources[name], queries)


def _check(settings: SourceSettings, wanted: set[str]) -> None:
    with located(settings):
        source = load_source(settings.name, settings.options)
        if isinstance(source, Checkable):
            queries = [query for name, query in settings.queries.items() if name in wanted]
            with_retries(lambda: source.check(queries), _RETRY)


def examine_source(settings: SourceSettings, today: date) -> list[Remark]:
    """Return what a source says of itself, by something cheap that it asks its server; raises as a check."""
    with located(settings):
        source = load_source(settings.name, settings.options)
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
        path = _path(settings.name, error)
        if path is None or settings.file is None:
            raise ConfigError(f"source {settings.name}: {_said(error)}", remedy=remedy) from error
        raise error_in(settings.file, path, _said(error), remedy=remedy) from error


def _path(name: str, error: Exception) -> tuple[Step, ...] | None:
    """Return which field of the settings an error is about, if it is about one."""
    match error:
        case UnknownSource():
            return ("sources", name)
        case BadOption():
            return ("sources", name, "options", *error.path)
    return None


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, SealbookError) else f"{type(error).__name__}: {first_line(error)}"
