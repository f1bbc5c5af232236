"""Seals that were found, and that no event tells of: whoever made them died, or knows nothing of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sealbook.errors import SealbookError
from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, RunId
from sealbook.model.partition_events import PartitionSealed
from sealbook.raw import RawReader


def untold_seals(
    ledger: LedgerReader, raw: Callable[[], RawReader], runs: Iterable[tuple[PartitionKey, RunId]]
) -> Iterator[PartitionSealed]:
    """Yield what the log has yet to hear of some sealed runs, in the words of their metadata (R-EVT-11).

    Of a seal that cannot be read, or speaks of another partition, nothing can be told: to judge it is for
    validation, and what is not judged is found again.
    """
    untold = ledger.partition_log.untold_seals(runs)
    if not untold:
        return
    store = raw()

    def read(run: tuple[PartitionKey, RunId]) -> PartitionSealed | None:
        key, run_id = run
        try:
            seal = store.metadata(key, run_id)
        except SealbookError:
            return None
        return seal.fact if seal.is_of(key) and seal.run_id == run_id else None

    yield from filter(None, store.each(read, untold))
