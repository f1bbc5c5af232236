"""What lies in a raw store, run by run: found by listing it, without reading a seal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sealbook.errors import InvalidInput
from sealbook.model.selection import Selection
from sealbook.raw.layout import (
    METADATA,
    PAYLOAD_NAME,
    RunPaths,
    customer_of,
    key_prefix,
    parse_run,
    query_prefix,
)
from sealbook.storage import Entry, Storage
from sealbook.storage.ahead import ahead

_LISTINGS = 16


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run of a partition, by their names."""

    run: RunPaths
    files: dict[str, Entry]

    @property
    def is_sealed(self) -> bool:
        """Whether there is a seal."""
        return METADATA in self.files

    @property
    def payloads(self) -> list[str]:
        """The names of all payloads, sealed and not."""
        return [name for name in self.files if PAYLOAD_NAME.fullmatch(name)]


def list_runs(storage: Storage, selection: Selection) -> Iterator[RunFiles]:
    """Yield the runs that are chosen, in the order of keys and then of runs.

    Costs one listing for each customer and query named, whatever the number of partitions, or one for each
    key that is named.
    """
    for files in _below_each(storage, _directories(storage, selection)):
        run = files.run
        if selection.has_day(run.key.logical_date) and selection.has_run(run.run_id):
            yield files


def list_runs_below(storage: Storage, directory: str) -> list[RunFiles]:
    """List the runs below a directory, in order: paths sort as keys do, since / sorts first."""
    directories: dict[str, dict[str, Entry]] = {}
    for entry in storage.entries(directory):
        parent, _, name = entry.path.rpartition("/")
        directories.setdefault(parent, {})[name] = entry
    found = []
    for parent, files in directories.items():
        try:
            found.append(RunFiles(parse_run(parent), files))
        except InvalidInput:
            continue  # stray files of somebody else's: what has no key is no partition
    return found


def _below_each(storage: Storage, directories: Iterable[str]) -> Iterator[RunFiles]:
    """List directory after directory, several at once: a listing is mostly a wait for the storage."""
    for runs in ahead(partial(list_runs_below, storage), directories, at_once=_LISTINGS):
        yield from runs


def _directories(storage: Storage, selection: Selection) -> Iterator[str]:
    """Yield the directories that hold what is chosen, in the order of keys."""
    if selection.keys:
        yield from map(key_prefix, sorted(selection.keys))
        return
    sources = storage.directories() if selection.source is None else sorted(selection.source)
    queries = [None] if selection.queries is None else sorted(selection.queries)
    for source in sources:
        for customer_id in _customers(storage, source, selection.customers):
            for query_name in queries:
                yield query_prefix(source, customer_id, query_name)


def _customers(storage: Storage, source: str, wanted: Sequence[str] | None) -> list[str]:
    if wanted is not None:
        return sorted(wanted)
    return [name for name in map(customer_of, storage.directories(source)) if name is not None]
