"""Many sorted streams become few, by way of files: of thousands of archived runs, few are open at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from pathlib import Path
from tempfile import TemporaryDirectory

from sealbook.ledger.events import FeedEvent
from sealbook.model import PartitionKey, RunEvent

FEW = 64
"""How many streams are read at a time."""

Stream = Iterator[FeedEvent]
"""Events of partitions, in the order of the partitions; what it reads, it opens when it is first asked."""


@contextmanager
def few_streams(streams: Sequence[Stream]) -> Iterator[Sequence[Stream]]:
    """Yield at most FEW streams of the same events; where there are more, they are merged in rounds first."""
    with TemporaryDirectory(prefix="sealbook-") as folder:
        files = (Path(folder) / str(number) for number in range(len(streams)))
        while len(streams) > FEW:
            streams = [
                _spilled(streams[start : start + FEW], next(files)) for start in range(0, len(streams), FEW)
            ]
        yield streams


def partition_of(each: FeedEvent) -> PartitionKey:
    """Return the partition that an event is of, by which streams are sorted."""
    return PartitionKey.parse(each.event.partition or "")


def _spilled(streams: Sequence[Stream], file: Path) -> Stream:
    """Merge streams into a file, and return the stream of it."""
    with file.open("w", encoding="utf-8") as lines:
        for each in merge(*streams, key=partition_of):
            lines.write(f"{each.position} {each.event.to_json()}\n")
    return _read(file)


def _read(file: Path) -> Stream:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            position, _, event = line.partition(" ")
            yield FeedEvent(int(position), RunEvent.from_json(event))
    file.unlink()
