"""Which partitions somebody waits for, and which of them are not there yet. Nothing here knows of Airflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sealbook
from sealbook.book.snapshot import PartitionsAsked
from sealbook.model.publication import Coverage, CoverageKind
from sealbook.model.selection import Selection
from sealbook.model.wire import parse_time

NOTHING = "no partition is expected of what is chosen"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Partitions of a query that are to be published, by text alone, so that it can be stored and sent.

    With `published_since`, each must have been published at that moment or later; with `strict`, one that is
    behind its newest accepted run is not there yet.
    """

    book: str
    query_name: str
    source: str | None = None
    customers: tuple[str, ...] | None = None
    since: str | None = None
    until: str | None = None
    published_since: str | None = None
    strict: bool = False

    def waiting(self) -> list[str]:
        """Say of each partition that is not there yet which it is, and why; nothing if all are.

        Where no partition is expected at all, that is said: nobody waits for nothing.
        """
        with sealbook.open(self.book, read_only=True) as book, book.snapshot(strict=self.strict) as now:
            asked: PartitionsAsked = {"customers": self.customers, "since": self.since, "until": self.until}
            covered = now.coverage(self.query_name, source=self.source, **asked)
            if not covered:
                return [NOTHING]
            chosen = Selection(source=covered[0].source, queries=self.query_name, **asked)
            times = {each.key: each.loaded_at for each in book.ledger.pointers.published(chosen)}
        return [said for each in covered if (said := self._missing(each, times.get(each.key)))]

    def _missing(self, covered: Coverage, loaded_at: datetime | None) -> str | None:
        if covered.kind not in (CoverageKind.PUBLISHED, CoverageKind.BEHIND) or loaded_at is None:
            return f"{covered.key}: {covered.why or covered.kind}"
        if self.published_since is None or loaded_at >= parse_time("published_since", self.published_since):
            return None
        return f"{covered.key}: published at {loaded_at:%Y-%m-%d %H:%M:%S} UTC, and not since"


def few(waiting: Sequence[str], most: int = 5) -> str:
    """Name some of what is waited for, and count the rest."""
    rest = len(waiting) - most
    return "; ".join(waiting[:most]) + (f"; and {rest:,} more" if rest > 0 else "")
