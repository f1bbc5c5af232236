"""What is known of partitions, put beside how their last attempts failed, while both stream in key order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from sealbook.model import PartitionKey
from sealbook.model.failures import LastFailure


class _HasKey(Protocol):
    @property
    def key(self) -> PartitionKey: ...


KnownT = TypeVar("KnownT", bound=_HasKey)


def with_failures(
    known: Iterable[KnownT], failures: Iterable[tuple[PartitionKey, LastFailure]]
) -> Iterator[tuple[KnownT, LastFailure | None]]:
    """Yield each that is known, with the failure of its partition if there is one."""
    remaining = iter(failures)
    key, failure = next(remaining, (None, None))
    for each in known:
        if key is not None:
            own = each.key
            while key is not None and key < own:
                key, failure = next(remaining, (None, None))
            if key == own:
                yield each, failure
                continue
        yield each, None
