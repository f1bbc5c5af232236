"""The settings of a book, checked and complete: what the rest of Sealbook gets to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
