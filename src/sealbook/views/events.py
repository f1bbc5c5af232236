"""The events of a run, from the archive and from the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice

from sealbook.errors import NotFound
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.model import RunEvent


def archived_events(store: RunStoreReader, archive: str, run_id: str) -> list[RunEvent]:
    """Return what the archive has of a run, in the order of numbers."""
    retirements = store.retirements(run_id)
    if not retirements:
        return []
    from sealbook.status.archive import RunArchive, Span

    opened = RunArchive(archive)
    return [event for each in retirements for event in opened.events(Span.of(each))]


def events_of_run(
    store: RunStoreReader,
    archive: str,
    run_id: str,
    *,
    types: Collection[str] = (),
    after: int = 0,
    limit: int | None = None,
) -> Iterator[RunEvent]:
    """Yield the events of a run with a number above `after`, of these types; NotFound if it has none."""
    archived = archived_events(store, archive, run_id)
    if not archived and not store.fetch_events(run_id, limit=1):
        raise NotFound(f"there is no run {run_id}", remedy="`sealbook runs` lists the runs.")
    older = (event for event in archived if (event.run_seq or 0) > after)
    found = chain(older, _logged(store, run_id, after))
    return islice((event for event in found if not types or event.event_type in types), limit)


def _logged(store: RunStoreReader, run_id: str, after: int) -> Iterator[RunEvent]:
    while page := store.fetch_events(run_id, after):
        yield from page
        after = page[-1].run_seq or after
