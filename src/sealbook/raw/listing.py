"""What lies in a raw store, run by run: found by listing it, without reading a seal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from sealbook.errors import InvalidInput
from sealbook.model.selection import Selection
from sealbook.raw.layout import (
    METADATA,
    PAYLOAD_NAME,
    RUN_DEPTH,
    RunName,
    RunPaths,
    customer_of,
    key_prefix,
    parse_run,
    query_prefix,
    run_directory,
)
from sealbook.storage import Branch, Entry, Storage


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run of a partition, by their names."""

    run: RunPaths
    files: Mapping[str, Entry]

    @property
    def is_sealed(self) -> bool:
        """Whether there is a seal."""
        return METADATA in self.files

    @property
    def payloads(self) -> list[str]:
        """The names of all payloads, sealed and not."""
        return [name for name in self.files if PAYLOAD_NAME.fullmatch(name)]


def list_runs(storage: Storage, selection: Selection, besides: Iterable[RunName] = ()) -> Iterator[RunFiles]:
    """Yield the runs that are chosen, in the order of keys and then of runs.

    Costs one listing for each customer and query named, whatever the number of partitions, or one for each
    key that is named. Runs that are named as `besides`, in the same order, are left out without a look.
    """
    left_out = _InOrder(run_directory(*name) for name in besides)
    for path, files in _below_each(storage, _directories(storage, selection)):
        if path in left_out:
            continue
        found = _run_files(path, files)
        if found is None:
            continue
        run = found.run
        if selection.has_day(run.key.logical_date) and selection.has_run(run.run_id):
            yield found


def list_runs_below(storage: Storage, directory: str) -> list[RunFiles]:
    """List the runs below a directory, in order: paths sort as keys do, since / sorts first."""
    found = (_run_files(*each) for each in _listed_below(storage, directory))
    return [each for each in found if each is not None]


class _InOrder:
    """Paths that come in order, asked for in the same order: of any number, one is held at a time."""

    def __init__(self, paths: Iterator[str]) -> None:
        self._paths = paths
        self._next = next(paths, None)

    def __contains__(self, path: str) -> bool:
        while self._next is not None and self._next < path:
            self._next = next(self._paths, None)
        return self._next == path


def _run_files(path: str, files: Callable[[], Mapping[str, Entry]]) -> RunFiles | None:
    try:
        run = parse_run(path)
    except InvalidInput:
        return None  # somebody else's: what has no key is no partition
    found = files()
    return RunFiles(run, found) if found else None


def _below_each(storage: Storage, directories: Iterable[str]) -> Iterator[Branch]:
    """List directory after directory, many at once where a listing is mostly a wait for the storage."""
    return chain.from_iterable(storage.each(partial(_listed_below, storage), directories))


def _listed_below(storage: Storage, directory: str) -> list[Branch]:
    return list(storage.tree(directory, _levels_below(directory)))


def _levels_below(directory: str) -> int:
    """Return how far below a directory those of runs are."""
    return RUN_DEPTH - directory.count("/")


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
