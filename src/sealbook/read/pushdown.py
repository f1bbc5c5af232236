"""Spark's filters on the columns of the key, as a selection that the ledger can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

from sealbook.model.selection import Selection
from sealbook.read.schema import KEY_TYPES


class PushedFilters:
    """Takes filters over; `selection` is what they leave."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection

    def push(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Take filters over, all of which must hold; yield those that Spark must still apply to rows."""
        for each in filters:
            if not self._take(each):
                yield each

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
                self.selection = self.selection.narrowed(since=day)
                return True
            case LessThanOrEqual(attribute=("logical_date",), value=date() as day):
                self.selection = self.selection.narrowed(until=day)
                return True
            # The ledger's bounds are included: Spark leaves out the day itself.
            case GreaterThan(attribute=("logical_date",), value=date() as day):
                self.selection = self.selection.narrowed(since=day)
            case LessThan(attribute=("logical_date",), value=date() as day):
                self.selection = self.selection.narrowed(until=day)
        return False

    def _among(self, name: str, values: Iterable[object]) -> bool:
        match name:
            case "customer_id":
                self.selection = self.selection.narrowed(customers=map(str, values))
            case "run_id":
                self.selection = self.selection.narrowed(runs=map(str, values))
            case "logical_date":
                days = [day for day in values if isinstance(day, date)]
                if days:
                    self.selection = self.selection.narrowed(since=min(days), until=max(days))
                return len(days) == 1
            case _:
                return False
        return True
