"""The port that every source implements, and how a source is found by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, Self, TypeVar, cast

import msgspec

from sealbook.errors import ConfigError, MissingExtra
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.raw import Row

__all__ = ["ENTRY_POINTS", "Row", "Source", "load_source", "read_options"]

ENTRY_POINTS = "sealbook.sources"

_Options = TypeVar("_Options", bound=msgspec.Struct)


class Source(Protocol):
    """Where rows come from. One instance serves a whole task, from several threads at once."""

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make a source of its options, or raise ConfigError. Opens no connection yet."""
        ...

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Row]:
        """Give the rows of one partition, in the order received, from the beginning at every call.

        Raises Transient, QuotaExceeded or Permanent, here or while the rows are taken (R-CTL-7). It does
        not retry: rows may have been written by then, so only the caller can start the partition again.
        """
        ...


def load_source(name: str, options: Mapping[str, object]) -> Source:
    """Make the source that an entry point of the group `sealbook.sources` has under this name."""
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        raise ConfigError(
            f"there is no source {name!r}; known are {', '.join(sorted(found)) or 'none'}",
            remedy=f"Correct the name, or install the package whose entry point in {ENTRY_POINTS} has it.",
        )
    return _load_class(found[name]).from_options(options)


def read_options(source: str, kind: type[_Options], options: Mapping[str, object]) -> _Options:
    """Check options strictly against a msgspec Struct; a ConfigError names the path of the bad one."""
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        # msgspec calls the whole `$`; whoever wrote the configuration file knows it as `options`.
        problem = str(error).replace("`$", "`options")
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise ConfigError(
            f"options of source {source}: {problem}", remedy=f"Its options are {known or 'none'}."
        ) from error


def _load_class(entry: EntryPoint) -> type[Source]:
    try:
        return cast(type[Source], entry.load())
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"source {entry.name} needs the module {error.name}, which is not installed",
            remedy=f"Install what {entry.dist.name if entry.dist else entry.value} needs for this source.",
        ) from error
    except AttributeError as error:
        raise ConfigError(f"source {entry.name}: its entry point {entry.value} names no class") from error
