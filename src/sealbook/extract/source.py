"""The port that every source implements, and how a source is found by its name."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import IntEnum
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeVar, cast, runtime_checkable

import msgspec

from sealbook.config import SOURCE_ENTRY_POINTS, SourceOptions
from sealbook.config.documents import Step, dotted, explain
from sealbook.errors import ConfigError, MissingExtra
from sealbook.model import PartitionKey
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.contract import Query
from sealbook.raw import Row

__all__ = [
    "BadOption",
    "Bounded",
    "Checkable",
    "DiscoveredAccount",
    "Discovers",
    "Examinable",
    "Forewarning",
    "Ranged",
    "Remark",
    "Row",
    "Source",
    "UnknownSource",
    "Urgency",
    "load_source",
    "option_value",
    "read_options",
]

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


@runtime_checkable
class Checkable(Protocol):
    """A source that can say before anything starts that it could fetch nothing."""

    def check(self, queries: Sequence[Query]) -> None:
        """Raise what a fetch of any partition of these queries would raise: no credentials, no such folder.

        It is called once, where the command runs. It spends no quota, and fetches nothing.
        """
        ...


@runtime_checkable
class Ranged(Protocol):
    """A source that can fetch several consecutive days of one customer and query in one request."""

    def days_per_request(self, query: Query) -> int:
        """Return how many days it takes at most in one request of a query, as one day has it; 1: day by day.

        It asks nobody, and loads no client: whoever plans requests asks it, too.
        """
        ...

    def fetch_range(self, keys: Sequence[PartitionKey], query: Query) -> Iterator[tuple[date, Row]]:
        """Give the rows of consecutive days, each with its day: the earliest day first, as `fetch` else.

        The rows of a day are those that `fetch` would give for it. A day without any is empty; one that comes
        after a later day, or was not asked for, is an error, and nothing of the range is sealed. So it is
        when the stream breaks. It is one request, and is called with two days or more.
        """
        ...


class Urgency(IntEnum):
    """How soon something has to be done: the level at which the log says it."""

    SOON = logging.WARNING
    NEXT = logging.ERROR
    NOW = logging.CRITICAL


class Remark(NamedTuple):
    """What a source says of itself; `remedy` says what to do, unless all is in order."""

    text: str
    remedy: str | None = None
    urgency: Urgency = Urgency.SOON


@runtime_checkable
class Bounded(Protocol):
    """A source that gives its days for some time only. Older ones are not asked for."""

    def horizon(self, today: date) -> date | None:
        """Return the first day that it still gives; None if it gives all. It asks nobody."""
        ...


@runtime_checkable
class Forewarning(Protocol):
    """A source that knows of something that will stop it: a run or loop says so when it begins."""

    def forewarn(self, queries: Sequence[Query], today: date) -> Sequence[Remark]:
        """Say what will stop these queries, from what is known without asking anybody."""
        ...


@runtime_checkable
class Examinable(Protocol):
    """A source that can tell how it is when somebody asks: `sealbook doctor`, and nobody else."""

    def examine(self, queries: Sequence[Query], today: date) -> Sequence[Remark]:
        """Ask the server something cheap, as these queries would, and say what it answered.

        Raises what the request raises. Unlike `check` it may spend a little of a quota.
        """
        ...


@runtime_checkable
class Discovers(Protocol):
    """A source that can tell which accounts there are, so that nobody has to list them."""

    def accounts(self, root: str, queries: Sequence[Query]) -> Iterator[DiscoveredAccount]:
        """Give every account below a root, closed ones and managers too, each at least once.

        `root` is what the settings say after `discover`, and the queries are all that the source has. Raises
        as `fetch` does; an answer that breaks off changes nothing.
        """
        ...


class UnknownSource(ConfigError):
    """No entry point has the name of the source's type."""


class BadOption(ConfigError):
    """An option of a source is wrong; `path` is where it stands below `options`."""

    def __init__(self, message: str, path: tuple[Step, ...], *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.path = path


def load_source(type_name: str, options: Mapping[str, object]) -> Source:
    """Make the source that an entry point of the group `sealbook.sources` has under this name: its type."""
    found = {entry.name: entry for entry in entry_points(group=SOURCE_ENTRY_POINTS)}
    if type_name not in found:
        raise UnknownSource(
            f"there is no source {type_name!r}; known are {', '.join(sorted(found)) or 'none'}",
            remedy="Correct the name, say by `type` which of these it is,"
            f" or install the package whose entry point in {SOURCE_ENTRY_POINTS} has it.",
        )
    return _load_class(found[type_name]).from_options(options)


def read_options(source: str, kind: type[_Options], options: Mapping[str, object]) -> _Options:
    """Check options strictly against a msgspec Struct; a BadOption names the path of the bad one.

    A field of type `Path` is relative to the folder of the book's settings, and `~` is the user's home. One
    of a class of `str` is made of its text; the ValueError of a text that it does not take says why.
    """
    root = options.root if isinstance(options, SourceOptions) else Path()
    try:
        return msgspec.convert(dict(options), kind, dec_hook=partial(option_value, root=root))
    except msgspec.ValidationError as error:
        problem = explain(error, kind)
        field = f"{dotted(problem.path)}: " if problem.path else ""
        known = ", ".join(each.encode_name for each in msgspec.structs.fields(kind))
        raise BadOption(
            f"options of source {source}: {field}{problem.text}",
            problem.path,
            remedy=f"Its options are {known or 'none'}.",
        ) from None


def option_value(wanted: type, value: object, *, root: Path = Path()) -> object:
    """Make of an option's text what msgspec leaves to us: a Path, or a kind of text."""
    if issubclass(wanted, str):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError("expected text")
        return wanted(str(value))
    if not issubclass(wanted, Path):
        raise TypeError(f"options of type {wanted} are not supported")
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected the path of a file or folder")
    return root / Path(value).expanduser()


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
