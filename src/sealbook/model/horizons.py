"""How far back sources still give their days: what is sealed of an older one is the only copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from sealbook.model.selection import Keyed

IRREPLACEABLE = "irreplaceable"
"""What is sealed of a day past the horizon of its source; and the word that confirms what would drop it."""


@dataclass(frozen=True, slots=True)
class Horizons:
    """The first day that each source still gives, by its name; one that is not named has no such day."""

    first_days: Mapping[str, date] = field(default_factory=dict)

    def is_past(self, key: Keyed) -> bool:
        """Tell whether a partition's source does not give its day any more."""
        first = self.first_days.get(key.source)
        return first is not None and key.logical_date < first

    def why(self, source: str) -> str:
        """Say where the horizon of a source is that has one."""
        return f"source {source} gives days from {self.first_days[source]} on only"


NO_HORIZONS = Horizons()
