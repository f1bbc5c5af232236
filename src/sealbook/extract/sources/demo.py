"""The demo source: made-up Google Ads reports, always the same ones, and faults where its options ask."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec

from sealbook.extract.source import read_options
from sealbook.extract.sources.demo_faults import (
    ErrorFault,
    Fault,
    LineFault,
    Short,
    Slow,
    fail,
    spoil,
)
from sealbook.extract.sources.demo_rows import demo_lines
from sealbook.model import PartitionKey
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.contract import Query


class DemoAccount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An account that a demo source tells of."""

    id: str
    name: str | None = None
    status: Literal["enabled", "suspended", "canceled", "closed"] = "enabled"
    time_zone: str | None = None
    currency: str | None = None
    labels: tuple[str, ...] = ()


class DemoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a demo source can be told."""

    seed: int = 0
    """Another seed gives other rows."""
    rows: Annotated[int, msgspec.Meta(ge=0)] = 200
    """Rows of each partition."""
    restatement: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many times the day was extracted before; its conversions grow with each."""
    latency_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The wait before the first row of each fetch."""
    faults: tuple[Fault, ...] = ()
    """What goes wrong, and where."""
    memory: Path | None = None
    """A folder that counts fetches for faults that skip or pass; without one, each process counts its own."""
    accounts: tuple[DemoAccount, ...] = ()
    """What it tells whoever asks which accounts there are; rows are given for any."""


class DemoSource:
    """Gives the same rows for the same key, options and query name; needs no network."""

    def __init__(self, options: DemoOptions, *, sleep: Callable[[float], object] = time.sleep) -> None:
        """Take checked options; `sleep` waits out latency and slow accounts."""
        self._options = options
        self._sleep = sleep
        self._fetches: Counter[tuple[int, PartitionKey]] = Counter()
        self._lock = threading.Lock()

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make a demo source of the fields of DemoOptions."""
        return cls(read_options("demo", DemoOptions, options))

    def accounts(self, root: str, queries: Sequence[Query]) -> Iterator[DiscoveredAccount]:  # noqa: ARG002
        """Tell of the accounts that the options have, below a manager of any id."""
        yield DiscoveredAccount(root, name="demo", is_manager=True)
        for each in self._options.accounts:
            yield DiscoveredAccount(
                each.id,
                name=each.name,
                status=each.status,
                is_open=each.status in ("enabled", "suspended"),
                level=1,
                time_zone=each.time_zone,
                currency=each.currency,
                labels=each.labels,
            )

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[bytes]:  # noqa: ARG002
        """Give the rows of one partition. The shape goes by the key's query name; the text is not read."""
        options = self._options
        faults = [
            fault
            for number, fault in enumerate(options.faults)
            if fault.strikes(key, options.seed)
            and (not fault.counts or fault.strikes_at(self._count(number, key)))
        ]
        seconds, rows = options.latency_seconds, options.rows
        for fault in faults:
            if isinstance(fault, Slow):
                seconds += fault.seconds
            elif isinstance(fault, Short):
                rows = int(rows * fault.keep)
        if seconds:
            self._sleep(seconds)
        lines = demo_lines(key, seed=options.seed, rows=rows, restatement=options.restatement)
        for fault in faults:
            if isinstance(fault, LineFault):
                lines = spoil(fault, lines)
            elif isinstance(fault, ErrorFault):
                lines = fail(fault, lines, key)
        return lines

    def _count(self, number: int, key: PartitionKey) -> int:
        """Count a fetch that a fault could strike, and return the how-manieth it is."""
        memory = self._options.memory
        if memory is None:
            with self._lock:
                self._fetches[number, key] += 1
                return self._fetches[number, key]
        memory.mkdir(parents=True, exist_ok=True)
        with (memory / f"{number}-{str(key).replace('/', '-')}").open("ab") as file:
            file.write(b".")  # appended, and so counted once, whoever else counts
            return file.tell()


def demo_configuration() -> str:
    """Return the demo's queries and contracts, in the format of `config/google_apis.yaml`."""
    return files(__package__).joinpath("demo.yaml").read_text("utf-8")
