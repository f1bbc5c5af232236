"""The settings of a book, checked and complete: what the rest of Sealbook gets to see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from sealbook.config.console import ConsoleSettings
from sealbook.config.control import ControlSettings
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.contract import Query
from sealbook.model.discovery import Discovery
from sealbook.model.freshness import Freshness
from sealbook.model.scope import DEFAULT, Scope
from sealbook.model.selection import Selection
from sealbook.model.universe import Account, Asset, AssetName

SOURCE_ENTRY_POINTS = "sealbook.sources"
"""The group of entry points in which packages name their sources."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a source may be asked: by the token as a whole, by each customer, and in how many threads."""

    requests_per_second: float | None = None
    requests_per_second_per_customer: float | None = None
    threads: int = 8


class SourceOptions(dict[str, object]):
    """The options of a source as its file has them; a relative path among them is relative to `root`."""

    def __init__(self, options: Mapping[str, object], root: Path) -> None:
        super().__init__(options)
        self.root = root


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """A source of the book: its customers, in canonical form, and its queries by name."""

    name: str
    customers: tuple[str, ...]
    queries: Mapping[str, Query]
    options: Mapping[str, object] = field(repr=False)  # may hold secrets
    limits: Limits = Limits()
    type: str = ""
    """The name of the entry point that makes it: the source's own, unless another is given."""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """By customer. One that is not given has days in UTC, and no first and last one."""
    discovery: Discovery | None = None
    """Which accounts are taken of those that the source tells of, if they are not listed."""
    discovered: bool = False
    """Whether `accounts` are those that the ledger knows: a file alone has none of them."""
    freshness: Freshness | None = None
    """The policy of queries that have none of their own."""
    catalogue: Path | None = None
    """The file that the queries come from."""
    file: Path | None = None
    """The settings file that has the source, for errors found after it was read."""
    days_per_request: int | None = None
    """How many days are fetched in one request at most; None: as the source says."""

    def __post_init__(self) -> None:
        accounts = {each: self.accounts.get(each) or Account(each) for each in self.customers}
        object.__setattr__(self, "accounts", accounts)
        object.__setattr__(self, "type", self.type or self.name)

    @property
    def waits_for_accounts(self) -> bool:
        """Whether nobody has asked the source yet which accounts there are."""
        return self.discovery is not None and not self.discovered

    @property
    def assets(self) -> Iterator[Asset]:
        """The queries, by what is expected of their partitions."""
        for query in self.queries.values():
            name = AssetName(self.name, query.name)
            yield Asset(name, query.freshness or self.freshness, query.upstreams)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where Spark runs, its own settings, and whether Java on this machine starts from a class archive."""

    master: str = "local[*]"
    config: Mapping[str, str] = field(default_factory=dict)
    class_archive: bool = True
    for_command: bool = False
    """Whether Java serves one command and ends with it: then it is set up for short work."""
    ship_packages: bool = True
    """Whether the executors of a cluster are sent Sealbook and its sources; else they have them."""
    sources: tuple[str, ...] = ()
    """The types of the sources that executors fetch from."""


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long the log keeps the events of runs that have ended, and where they are kept afterwards."""

    archive: str = "archive"
    events: timedelta | None = None
    """None: for ever."""


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Who is told of alerts: a command, on its standard input, or an address, by a POST."""

    command: tuple[str, ...] | None = None
    url: str | None = field(default=None, repr=False)  # both may hold secrets
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class MirrorFormat(StrEnum):
    """As what tables a mirror is kept."""

    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """A copy of what is published of some queries, each as a table below `location`."""

    name: str
    format: MirrorFormat
    location: str
    queries: tuple[AssetName, ...]
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold a password
    """The properties of the catalogue in which Iceberg tables are found."""


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """Where OpenLineage events go, to a file or an address, and the namespace of the jobs that they name."""

    path: Path | None = None
    url: str | None = field(default=None, repr=False)  # may hold a secret, as headers may
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    namespace: str = "sealbook"


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole `sealbook.yaml`. Folders are absolute paths; other places are URLs."""

    root: Path
    ledger: str = field(repr=False)  # may hold a password
    raw: str
    warehouse: str
    sources: Mapping[str, SourceSettings]
    spark: SparkSettings
    retention: RetentionSettings = RetentionSettings()
    tenant: str = DEFAULT
    workspace: str = DEFAULT
    alerts: AlertSettings | None = None
    """None: nobody is told."""
    lineage: LineageSettings | None = None
    """None: no events are sent."""
    control: ControlSettings = field(default_factory=ControlSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    mirrors: Mapping[str, MirrorSettings] = field(default_factory=dict)
    file: Path | None = None
    """Where all this was read, for errors found later."""

    @property
    def scope(self) -> Scope:
        """Whose runs, partitions and alerts are the book's own, of those in its ledger."""
        return Scope(self.tenant, self.workspace)


def configured(sources: Mapping[str, SourceSettings], selection: Selection) -> list[Selection]:
    """Return what is chosen of each source, said in full; ConfigError if a name is not configured."""
    check_selection(sources, selection)
    check_accounts(sources, selection)
    if selection.keys:
        return [Selection(keys=selection.keys)]
    parts = []
    for name, each in sources.items():
        customers = _chosen(each.customers, selection.customers)
        queries = _chosen(each.queries, selection.queries)
        if (selection.source is None or name in selection.source) and customers and queries:
            parts.append(replace(selection, source=(name,), customers=customers, queries=queries))
    return parts


def check_selection(
    sources: Mapping[str, SourceSettings],
    selection: Selection,
    is_known: Callable[[str, str], bool] = lambda _what, _name: False,
) -> None:
    """Refuse the name of a source, or of a customer or query of it, that is not configured.

    `is_known` is asked about such a name: what was configured once, and has left traces, can be looked at.
    """
    keys = selection.keys
    wanted = {
        "source": {key.source for key in keys} if keys else selection.source,
        "customer": {key.customer_id for key in keys} if keys else selection.customers,
        "query": {key.query_name for key in keys} if keys else selection.queries,
    }
    of_sources = wanted["source"]
    chosen = [each for name, each in sources.items() if of_sources is None or name in of_sources]
    there = {
        "source": list(sources),
        "customer": [one for each in chosen for one in each.customers],
        "query": [one for each in chosen for one in each.queries],
    }
    for what, names in wanted.items():
        known = list(dict.fromkeys(there[what]))
        unknown = [name for name in sorted({*(names or ())} - {*known}) if not is_known(what, name)]
        if unknown and what == "customer" and any(each.waits_for_accounts for each in chosen):
            raise _not_discovered(chosen)
        if unknown:
            raise ConfigError(
                f"no {what} {', '.join(unknown)} is configured",
                remedy=f"Configured are {_some(known)}; to have another, configure it.",
            )


def check_accounts(sources: Mapping[str, SourceSettings], selection: Selection) -> None:
    """Refuse to choose among accounts where no source that is chosen was asked for them yet."""
    keys = selection.keys
    names = {key.source for key in keys} if keys else selection.source
    chosen = [each for name, each in sources.items() if names is None or name in names]
    if chosen and all(each.waits_for_accounts for each in chosen):
        raise _not_discovered(chosen)


def _not_discovered(sources: Iterable[SourceSettings]) -> ConfigError:
    waiting = ", ".join(each.name for each in sources if each.waits_for_accounts)
    return ConfigError(
        f"the accounts of {waiting} are not known yet",
        remedy="Ask for them: `sealbook accounts refresh`. A control loop does it by itself.",
    )


def find_query(sources: Mapping[str, SourceSettings], name: str, source: str | None = None) -> Query:
    """Return the configured query of a name; `source` is needed only where several have it."""
    check_selection(sources, Selection(source=source, queries=name))
    found = [
        each.queries[name]
        for each in sources.values()
        if name in each.queries and source in (None, each.name)
    ]
    if len(found) > 1:
        raise InvalidInput(
            f"several sources have a query {name}: {', '.join(query.source for query in found)}",
            field="source",
            remedy="Say which by `source`.",
        )
    return found[0]


def _chosen(names: Iterable[str], wanted: Collection[str] | None) -> tuple[str, ...]:
    return tuple(name for name in names if wanted is None or name in wanted)


def _some(names: Sequence[str]) -> str:
    """List names, but not all of hundreds."""
    shown = ", ".join(names[:_SHOWN]) or "none"
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
