"""Spark's filters on the columns of the key, as what the ledger can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from sealbook.errors import InvalidInput
from sealbook.model import RunId
from sealbook.model.keys import check_customer_id
from sealbook.model.publication import Published
from sealbook.read.plan import Filters
from sealbook.read.schema import KEY_TYPES


@dataclass
class Pushed:
    """What filters leave of the partitions. None leaves all."""

    customers: set[str] | None = None
    runs: set[str] | None = None
    since: date | None = None
    until: date | None = None

    def push(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Take filters over, all of which must hold; yield those that Spark must still apply to rows."""
        for each in filters:
            if not self._take(each):
                yield each

    def narrowed(self, asked: Filters) -> Filters:
        """Return what was asked for, and pushed besides."""
        narrower = asked.copy()
        customers, runs = asked.get("customers"), asked.get("runs")
        if self.customers is not None:
            narrower["customers"] = self.customers if customers is None else self.customers & {*customers}
        if self.runs is not None:
            narrower["runs"] = self.runs if runs is None else self.runs & {*runs}
        narrower["since"] = max(filter(None, (self.since, asked.get("since"))), default=None)
        narrower["until"] = min(filter(None, (self.until, asked.get("until"))), default=None)
        return narrower

    def leaves(self, published: Published) -> bool:
        """Say whether a partition is left."""
        return (
            (self.customers is None or published.customer_id in self.customers)
            and (self.runs is None or published.run_id in self.runs)
            and (self.since is None or published.logical_date >= self.since)
            and (self.until is None or published.logical_date <= self.until)
        )

    def _take(self, each: Filter) -> bool:
        """Take over what can be; say whether that was all of it."""
        match each:
            case IsNotNull(attribute=(name,)):
                return name in KEY_TYPES
            case EqualTo(attribute=(name,), value=value) | EqualNullSafe(attribute=(name,), value=value):
                return self._among(name, [value])
            case In(attribute=(name,), value=values):
                return self._among(name, values)
            case GreaterThanOrEqual(attribute=("logical_date",), value=date() as day):
                self._from(day)
                return True
            case LessThanOrEqual(attribute=("logical_date",), value=date() as day):
                self._to(day)
                return True
            # The ledger's bounds are included: Spark leaves out the day itself.
            case GreaterThan(attribute=("logical_date",), value=date() as day):
                self._from(day)
            case LessThan(attribute=("logical_date",), value=date() as day):
                self._to(day)
        return False

    def _among(self, name: str, values: Iterable[object]) -> bool:
        match name:
            case "customer_id":
                found = set(filter(_is_customer_id, map(str, values)))
                self.customers = found if self.customers is None else self.customers & found
            case "run_id":
                found = set(filter(_is_run_id, map(str, values)))
                self.runs = found if self.runs is None else self.runs & found
            case "logical_date":
                days = [day for day in values if isinstance(day, date)]
                if days:
                    self._from(min(days))
                    self._to(max(days))
                return len(days) == 1
            case _:
                return False
        return True

    def _from(self, day: date) -> None:
        self.since = day if self.since is None else max(self.since, day)

    def _to(self, day: date) -> None:
        self.until = day if self.until is None else min(self.until, day)


def _is_customer_id(text: str) -> bool:
    """Tell what a customer could be: to look for anything else is to find nothing, not an error."""
    try:
        check_customer_id("any", text)
    except InvalidInput:
        return False
    return True


def _is_run_id(text: str) -> bool:
    try:
        RunId(text)
    except InvalidInput:
        return False
    return True
