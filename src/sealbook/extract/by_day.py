"""Splits the stream of a range into its days, row by row: nothing of it is collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter

from sealbook.errors import Permanent
from sealbook.model import PartitionKey
from sealbook.raw import Row


def by_day(
    rows: Iterable[tuple[date, Row]], days: Sequence[PartitionKey]
) -> Iterator[tuple[PartitionKey, Iterator[Row]]]:
    """Give each day of a range with its rows, to be taken before the next day; one without rows is empty.

    When there is no further day, the stream has ended. Permanent if a day came out of order, or was not asked
    for: then nobody knows which of the others is whole.
    """
    groups = groupby(rows, key=itemgetter(0))
    group = next(groups, None)
    for key in days:
        if group is not None and group[0] == key.logical_date:
            yield key, map(itemgetter(1), group[1])
            group = next(groups, None)
        else:
            yield key, iter(())
    if group is not None:
        raise Permanent(
            f"{days[0]} … {days[-1].logical_date}: a row of {group[0]} came, which is out of order or was not"
            " asked for",
            remedy="Set days_per_request to 1 for this source until it is mended.",
        )
