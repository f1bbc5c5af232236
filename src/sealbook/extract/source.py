"""The port that every source implements, and how a source is found by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
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
    "Checkable",
    "DiscoveredAccount",
    "Discovers",
    "Examinable",
    "Remark",
    "Row",
    "Source",
    "UnknownSource",
    "load_source",
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


class Remark(NamedTuple):
    """What a source says of itself; `remedy` says what to do, unless all is in order."""

    text: str
    remedy: str | None = None


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
    """No entry point has the name of the source."""


class BadOption(ConfigError):
    """An option of a source is wrong; `path` is where it stands below `options`."""

    def __init__(self, message: str, path: tuple[Step, ...], *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.path = path


def load_source(name: str, options: Mapping[str, object]) -> Source:
    """Make the source that an entry point of the group `sealbook.sources` has under this name."""
    found = {entry.name: entry for entry in entry_points(group=SOURCE_ENTRY_POINTS)}
    if name not in found:
        raise UnknownSource(
            f"there is no source {name!r}; known are {', '.join(sorted(found)) or 'none'}",
            remedy="Correct the name,"
            f" or install the package whose entry point in {SOURCE_ENTRY_POINTS} has it.",
        )
    return _load_class(found[name]).from_options(options)


def read_options(source: str, kind: type[_Options], options: Mapping[str, object]) -> _Options:
    """Check options strictly against a msgspec Struct; a BadOption names the path of the bad one.

    A field of type `Path` is relative to the folder of the book's settings, and `~` is the user's home.
    """
    root = options.root if isinstance(options, SourceOptions) else Path()
    try:
        return msgspec.convert(dict(options), kind, dec_hook=lambda wanted, value: _path(root, wanted, value))
    except msgspec.ValidationError as error:
        problem = explain(error, kind)
        field = f"{dotted(problem.path)}: " if problem.path else ""
        known = ", ".join(each.encode_name for each in msgspec.structs.fields(kind))
        raise BadOption(
            f"options of source {source}: {field}{problem.text}",
            problem.path,
            remedy=f"Its options are {known or 'none'}.",
        ) from None


def _path(root: Path, wanted: type, value: object) -> Path:
    """Make a Path of an option's text, which msgspec leaves to us."""
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
