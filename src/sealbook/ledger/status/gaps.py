"""Days that are due and that nobody has touched: they have no rows."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, func, select

from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.gathering import in_spans
from sealbook.ledger.status.given import row


def untouched_days(connection: Connection, asked: Asked) -> Iterator[tuple[Series, list[int]]]:
    """Yield the series of which days that are due have no rows, and these days.

    Most lack the latest days, or the first ones: where the days that are there follow one another, to know
    the first and the last of them is enough.
    """
    spans = [(each.number, each.due.start, each.due.stop - 1) for each in asked.series if each.due]
    extents: dict[int, list[int]] = {}
    if asked.keyed:  # days of a series here and there
        torn = {number for number, *_ in spans if number is not None}
    else:
        extent = select(row.series_id, func.count(), func.min(row.day), func.max(row.day))
        found = in_spans(connection, extent.group_by(row.series_id), spans)
        extents = {number: rest for number, *rest in found}
        torn = {number for number, (count, first, last) in extents.items() if count <= last - first}
    days: dict[int, set[int]] = {number: set() for number in torn}
    of_torn = [span for span in spans if span[0] in torn]
    for number, day in in_spans(connection, select(row.series_id, row.day), of_torn) if torn else ():
        days[number].add(day)
    for each in asked.series:
        due = each.due
        count, first, last = (0, 0, 0) if each.number is None else extents.get(each.number, (0, 0, 0))
        if each.number in days:
            untouched = [day for day in due if day not in days[each.number]]
        elif count:
            untouched = [*range(due.start, first), *range(last + 1, due.stop)]
        else:
            untouched = list(due)
        if untouched:
            yield each, untouched
