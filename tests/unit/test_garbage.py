"""What the garbage collector looks at while a job runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from sealbook.spark import garbage
from sealbook.spark.garbage import existing_objects_frozen, freeze_loaded_modules


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    """Begin and end with nothing frozen."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_was_there_before_is_left_alone_while_the_block_lasts() -> None:
    with existing_objects_frozen():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_it_is_over_when_the_block_fails() -> None:
    with pytest.raises(KeyboardInterrupt), existing_objects_frozen():
        raise KeyboardInterrupt
    assert gc.get_freeze_count() == 0


def test_it_is_over_when_a_generator_is_abandoned() -> None:
    def job() -> Iterator[int]:
        with existing_objects_frozen():
            yield 1

    running = job()
    next(running)
    assert gc.get_freeze_count() > 0
    del running
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_frozen_stays_so() -> None:
    older: list[object] = []
    gc.freeze()
    younger: list[object] = []
    with existing_objects_frozen():
        assert (_is_frozen(older), _is_frozen(younger)) == (True, False)
    assert (_is_frozen(older), _is_frozen(younger)) == (True, False)


def test_a_worker_freezes_what_it_has_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the objects of each task would stay for good."""
    monkeypatch.setattr(garbage, "_modules_are_frozen", False)
    loaded: list[object] = []
    freeze_loaded_modules()
    of_a_task: list[object] = []
    freeze_loaded_modules()
    assert (_is_frozen(loaded), _is_frozen(of_a_task)) == (True, False)


def _is_frozen(thing: object) -> bool:
    """Say whether the collector leaves an object alone: it lists those that it looks at."""
    return not any(each is thing for each in gc.get_objects())
