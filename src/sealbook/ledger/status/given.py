"""What a statement is given about series and days, and the rows of partition status that it says this of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import ColumnElement, FromClause

from sealbook.ledger.status.tables import partition_status
from sealbook.ledger.status.timeline import FOREVER, Stretch

row = partition_status.c

NONE = 0
"""No such series, validator, contract or link: all numbers begin with 1, as places in arrays do."""

NEVER = 2**62
"""A time that does not come; its negative is one that has always passed."""

STRETCH = ("number", "late_before", "settled_from")
"""What is given about the days of a stretch."""

GATHERED = ("latest", "unknown")
"""What is given about a day of a link."""

KEY = ("series_id", "day")

Stretches = tuple[Stretch, ...]
Numbers = Sequence[int]


class Given(NamedTuple):
    """What is given: of series, in the order of some columns; of the days of profiles; of contracts."""

    columns: Sequence[str]
    series: Sequence[Numbers]
    profiles: Mapping[Stretches, int]
    number: Callable[[Stretch], int] = lambda _: 0
    contracts: Mapping[int, int] = MappingProxyType({})
    """The numbers of contracts by the ids of validators."""
    gathered: Sequence[Numbers] = ()
    """Link, day, and what is given about it."""
    since: int = -FOREVER
    until: int = FOREVER
    keys: Sequence[Numbers] = ()
    """Series and days, if single partitions are asked for."""
    above: frozenset[int] = frozenset()
    """Other series of which one day is looked up, in the days `above_since` to `above_until`."""
    above_since: int = -FOREVER
    above_until: int = FOREVER

    def stretches(self) -> Iterator[tuple[int, Stretch, Numbers]]:
        """Yield the stretches of each profile, with what is given about their days."""
        for stretches, profile in self.profiles.items():
            for each in stretches:
                late_before = -NEVER if each.late_before is None else each.late_before
                settled_from = NEVER if each.settled_from is None else each.settled_from
                yield profile, each, (self.number(each), late_before, settled_from)


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The rows that are asked for, and what is given about each."""

    source: FromClause
    tables: tuple[FromClause, ...]
    """What the row is joined of, for queries about it to name."""
    asked: ColumnElement[bool]
    own: Callable[[str], ColumnElement[int]]
    """Says what is given about a row's series."""
    number: ColumnElement[int]
    """The bits that are given for a row's series and for its day, added up."""
    late_before: ColumnElement[int]
    settled_from: ColumnElement[int]
    contract: ColumnElement[int]
    """The number of the contract by which a row was accepted."""
    gathered: tuple[tuple[ColumnElement[int], ColumnElement[int]], ...]
    """For each link of a series: the latest materialization above a row, and whether one is unknown."""
