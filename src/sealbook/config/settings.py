"""The settings of a book, checked and complete: what the rest of Sealbook gets to see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from sealbook.errors import ConfigError
from sealbook.model.contract import Query


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a source may be asked: by the token as a whole, by each customer, and in how many threads."""

    requests_per_second: float | None = None
    requests_per_second_per_customer: float | None = None
    threads: int = 8


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """A source of the book: its customers, in canonical form, and its queries by name."""

    name: str
    customers: tuple[str, ...]
    queries: Mapping[str, Query]
    options: Mapping[str, object] = field(repr=False)  # may hold secrets
    limits: Limits = Limits()
    catalogue: Path | None = None
    """The file that the queries come from."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where Spark runs, and its own settings."""

    master: str = "local[*]"
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole `sealbook.yaml`. Folders are absolute paths; other places are URLs."""

    root: Path
    ledger: str = field(repr=False)  # may hold a password
    raw: str
    warehouse: str
    sources: Mapping[str, SourceSettings]
    spark: SparkSettings


def check_configured(
    sources: Mapping[str, SourceSettings],
    *,
    source: str | None = None,
    customers: Collection[str] | None = None,
    queries: Collection[str] | None = None,
) -> None:
    """Refuse the name of a source, or of a customer or query of it, that is not configured."""
    _check_known("source", None if source is None else [source], sources)
    chosen = [each for name, each in sources.items() if source in (None, name)]
    _check_known("customer", customers, chain.from_iterable(each.customers for each in chosen))
    _check_known("query", queries, chain.from_iterable(each.queries for each in chosen))


def _check_known(what: str, wanted: Collection[str] | None, configured: Iterable[str]) -> None:
    known = list(dict.fromkeys(configured))
    unknown = sorted(set(wanted or ()) - set(known))
    if unknown:
        raise ConfigError(
            f"no {what} {', '.join(unknown)} is configured",
            remedy=f"Configured are {', '.join(known) or 'none'}; to have another, add it there.",
        )
