"""Work that mostly waits, done for many items at once: in order, and only so far ahead of its consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")

IN_FLIGHT = 32
"""Requests to an object store at once, in each process: it takes its time to answer, but answers many."""
MOST_BYTES = 128 * 1024 * 1024
"""What may be fetched and not yet taken, where sizes are known."""


def ahead(
    work: Callable[[Item], Done],
    items: Iterable[Item],
    *,
    at_once: int = IN_FLIGHT,
    size: Callable[[Item], int] = lambda _: 0,
    most_bytes: int = MOST_BYTES,
) -> Generator[Done, None, None]:
    """Map in threads, in order; so many items, or so many bytes, at most are under way or not yet taken.

    An error is raised where its result would be. Closing the iterator cancels what has not begun.
    """
    waiting: deque[tuple[Future[Done], int]] = deque()
    bytes_ahead = 0
    with ThreadPoolExecutor(at_once, thread_name_prefix="ahead") as pool:
        try:
            for item in items:
                item_bytes = size(item)
                while waiting and (len(waiting) >= at_once or bytes_ahead + item_bytes > most_bytes):
                    future, taken = waiting.popleft()
                    bytes_ahead -= taken
                    yield future.result()
                waiting.append((pool.submit(work, item), item_bytes))
                bytes_ahead += item_bytes
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()
