"""R-CTL-10: what one of several workers may ask of a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sealbook.extract import extractor as module
from sealbook.extract.allowance import Allowance
from sealbook.extract.extractor import Extractor
from sealbook.extract.results import Ending
from sealbook.extract.retry import RetryPolicy
from tests.support.extraction import demo_extractor, demo_keys

DAYS = tuple(demo_keys(customers=1, days=1))


@pytest.fixture
def failing(tmp_path: Path) -> Callable[[Allowance], Extractor]:
    """Return extractors whose source fails three times at first."""
    extractor = demo_extractor(tmp_path, faults=[{"kind": "transient", "tries": 3}])
    retry = RetryPolicy(base_seconds=0.0)
    return lambda allowance: replace(extractor, retry=retry, allowance=allowance)


def test_requests_are_counted(failing: Callable[[Allowance], Extractor]) -> None:
    """Each try asks once; what is sealed already asks nothing."""
    extractor = failing(Allowance())
    [first], [again] = extractor([DAYS]), extractor([DAYS])
    assert [(each.ending, each.requests) for each in (first, again)] == [
        (Ending.SEALED, 4),
        (Ending.SKIPPED, 0),
    ]


def test_where_requests_are_reserved_it_asks_once(failing: Callable[[Allowance], Extractor]) -> None:
    [result] = failing(Allowance(once=True))([DAYS])
    assert (result.ending, result.requests) == (Ending.FAILED, 1)


def test_a_task_that_is_tried_again_asks_nothing(
    failing: Callable[[Allowance], Extractor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what it had asked before it was lost."""
    monkeypatch.setattr(module, "attempt_number", lambda: 1)
    [result] = failing(Allowance(once=True))([DAYS])
    assert (result.ending, result.error_class, result.requests) == (Ending.FAILED, "transient", 0)


def test_nothing_is_asked_once_time_is_up(failing: Callable[[Allowance], Extractor]) -> None:
    [result] = failing(Allowance(until=0.0))([DAYS])
    assert (result.ending, result.requests, result.seal) == (Ending.LEFT, 0, None)


def test_a_part_of_the_limits() -> None:
    allowance = Allowance(part=0.25)
    assert (allowance.of(8.0), allowance.of(None)) == (2.0, None)
