"""What came of a stage, added up by query."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sealbook.extract.results import Ending, Extracted
from sealbook.load.results import Loaded, LoadEnding
from sealbook.views.reasons import Cause, Reason, group_reasons

EndingT = TypeVar("EndingT", Ending, LoadEnding)
ResultT = TypeVar("ResultT", Extracted, Loaded)


@dataclass(frozen=True, slots=True)
class QuerySum(Generic[EndingT]):
    """The results of one query: how they ended, with how many rows and bytes."""

    query: str
    endings: Counter[EndingT]
    rows: int
    bytes: int


def extract_sums(results: Iterable[Extracted]) -> list[QuerySum[Ending]]:
    """Add extractions up by query."""
    return [
        QuerySum(
            query,
            Counter(one.ending for one in those),
            sum(one.record_count for one in those),
            sum(one.payload_bytes for one in those),
        )
        for query, those in _by_query(results).items()
    ]


def load_sums(results: Iterable[Loaded]) -> list[QuerySum[LoadEnding]]:
    """Add loads up by query."""
    return [
        QuerySum(
            query,
            Counter(one.ending for one in those),
            sum(one.record_count for one in those),
            sum(one.bytes for one in those),
        )
        for query, those in _by_query(results).items()
    ]


def extract_reasons(results: Iterable[Extracted]) -> list[Reason]:
    """Say why extractions failed."""
    return group_reasons(
        Cause(each.key, f"{each.ending} ({each.error_class})", each.error_message)
        for each in results
        if each.error_message is not None
    )


def load_reasons(results: Iterable[Loaded]) -> list[Reason]:
    """Say why loads failed or left a partition alone."""
    return group_reasons(
        Cause(each.key, each.ending, each.reason) for each in results if each.reason is not None
    )


def _by_query(results: Iterable[ResultT]) -> dict[str, list[ResultT]]:
    found: dict[str, list[ResultT]] = defaultdict(list)
    for result in results:
        found[f"{result.key.source}/{result.key.query_name}"].append(result)
    return dict(found)
