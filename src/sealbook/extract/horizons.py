"""Asks sources how far back they go."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import date

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError
from sealbook.extract.source import Bounded, UnknownSource, load_source
from sealbook.model.horizons import Horizons

_LOG = logging.getLogger(__name__)


def horizons_of(sources: Iterable[SourceSettings], today: date) -> Horizons:
    """Return the horizons that sources have on a day.

    A source that cannot be made here, for lack of its packages, is taken to have none, and the log says so.
    """
    found = {}
    for settings in sources:
        try:
            source = load_source(settings.type, settings.options)
        except UnknownSource:
            continue  # of a book whose source is elsewhere: whoever fetches is told
        except ConfigError as error:
            _LOG.warning("source %s cannot say how far back it goes: %s", settings.name, error)
            continue
        first = source.horizon(today) if isinstance(source, Bounded) else None
        if first is not None:
            found[settings.name] = first
    return Horizons(found)
