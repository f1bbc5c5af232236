"""What a task makes of the rows that Spark's filter left: one report for each run, however many they are."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

from pyspark.accumulators import AccumulatorParam

from sealbook.model.verdict import MAX_LINES
from sealbook.rows.offending import MAX_REASONS, OffendingLines
from sealbook.spark.garbage import freeze_loaded_modules
from sealbook.validate.findings import Report
from sealbook.validate.key_text import key_text


class Reports(AccumulatorParam[list[Report]]):
    """Brings the reports of each task to the driver as soon as the task has ended well, and once."""

    def zero(self, value: list[Report]) -> list[Report]:  # noqa: ARG002 - the port's signature
        """Begin with none."""
        return []

    def addInPlace(self, value1: list[Report], value2: list[Report]) -> list[Report]:  # noqa: N802 - the port's name
        """Take in those of another task."""
        value1.extend(value2)
        return value1


def summarise(rows: Iterable[Sequence[Any]]) -> list[Report]:
    """Sum up rows of ordinal, line, finding and key, and then for each rule whether the line violates it.

    After the rules comes whether the line repeats its key; only then the key is looked at.
    """
    freeze_loaded_modules()
    findings: dict[int, list[bytes]] = defaultdict(list)
    violations: dict[int, dict[int, OffendingLines]] = defaultdict(lambda: defaultdict(OffendingLines))
    for ordinal, line, finding, key, *violated in rows:
        if finding is not None:
            findings[ordinal].append(bytes(finding))
            continue
        for place, is_violated in enumerate(violated):
            if is_violated:
                _count(violations[ordinal][place], line)
        if violated[-1]:
            repeated = violations[ordinal][len(violated) - 1]
            repeated.reasons = nsmallest(MAX_REASONS, {*repeated.reasons, key_text(key)})
    return [
        Report(ordinal, findings.get(ordinal, ()), dict(violations.get(ordinal, {})))
        for ordinal in sorted(findings.keys() | violations.keys())
    ]


def _count(offending: OffendingLines, line: int) -> None:
    offending.count += 1
    if len(offending.lines) < MAX_LINES or line < offending.lines[-1]:
        insort(offending.lines, line)
        del offending.lines[MAX_LINES:]
