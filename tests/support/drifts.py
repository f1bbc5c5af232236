"""Replacements of days at given ages, as a load records them, without files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, timedelta
from itertools import pairwise

from ulid import ULID

from sealbook.ledger import Ledger
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.artifacts import SwapResult
from sealbook.model.drift import Drift
from sealbook.model.freshness import day_end
from tests.support.ledger import KEY
from tests.support.pointers import staged_run


def run_after(age: timedelta, key: PartitionKey = KEY) -> RunId:
    """Return a run that was opened when a day was so old."""
    return RunId(str(ULID.from_datetime(day_end(key.logical_date, UTC) + age)))


def publish(ledger: Ledger, run: RunId, drift: Drift | None = None, key: PartitionKey = KEY) -> SwapResult:
    """Accept a run of ten records, and publish it."""
    ledger.judge([Verdict.accept(key, run, schema_version="1", record_count=10, validator_version="v")])
    return ledger.pointers.swap([replace(staged_run(key, run), drift=drift)])


def restate(ledger: Ledger, key: PartitionKey, changes: Iterable[tuple[timedelta, int]]) -> None:
    """Replace a day at each age, of whose ten rows so many changed, each by a hundredth of all clicks."""
    ages, counts = zip(*changes, strict=True)
    runs = [run_after(timedelta(), key), *(run_after(age, key) for age in ages)]
    publish(ledger, runs[0], key=key)
    for (before, run), age, count in zip(pairwise(runs), ages, counts, strict=True):
        totals = {"clicks": (100, 100 + count)} if count else {}
        drift = Drift(before, age, rows=10, changed=count, totals=totals, change=count / 100)
        publish(ledger, run, drift, key)
