"""Many at once: in order, and never further ahead than allowed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Lock

import pytest

from sealbook.storage.ahead import ahead


def test_results_come_in_order_and_as_many_are_under_way_as_allowed() -> None:
    """Each of eight waits until the other seven are under way, too."""
    together = Barrier(8)

    def work(number: int) -> int:
        together.wait(timeout=30)
        return number * number

    assert list(ahead(work, range(64), at_once=8)) == [number * number for number in range(64)]


@pytest.mark.parametrize(("at_once", "size", "most"), [(4, 0, 4), (8, 10, 3), (8, 40, 1), (8, 5, 6)])
def test_it_never_runs_further_ahead_than_allowed(at_once: int, size: int, most: int) -> None:
    """Neither in number nor in bytes; but one is always under way, however large."""
    taken = 0
    lock, furthest = Lock(), 0

    def items() -> Iterator[int]:
        nonlocal furthest
        for number in range(30):
            with lock:
                furthest = max(furthest, number - taken)
            yield number

    for result in ahead(lambda number: number, items(), at_once=at_once, size=lambda _: size, most_bytes=30):
        assert result == taken
        taken += 1
    assert taken == 30
    assert furthest <= most


def test_an_error_comes_where_its_result_would() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    results = ahead(work, range(10), at_once=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_closing_it_leaves_the_rest_undone() -> None:
    done: list[int] = []
    results = ahead(done.append, range(1000), at_once=2)
    next(results)
    results.close()
    assert len(done) < 10
