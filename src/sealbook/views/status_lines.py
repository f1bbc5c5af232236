"""Partitions that somebody should look at, the worst first, by the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice, starmap
from typing import TYPE_CHECKING, NamedTuple

from sealbook.ledger.status.reader import StatusReader
from sealbook.model import PartitionKey
from sealbook.model.display import Cell, Display
from sealbook.model.expectations import Expectations
from sealbook.model.outlook import Outlook
from sealbook.model.partition_events import Stage
from sealbook.model.selection import Selection
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import StatusFilter, StatusLine
from sealbook.status.listing import iter_lines
from sealbook.status.outlooks import Outlooks

if TYPE_CHECKING:
    from sealbook.book import BookReader

_DISPLAYS = {
    Display.WITHDRAWN: Cell.WITHDRAWN,
    Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: Cell.LAST_ATTEMPT_FAILED,
    Display.STALE: Cell.STALE,
    Display.MATERIALIZED: Cell.MATERIALIZED,
}
_FOUND_BY = {
    Cell.WITHDRAWN: StatusFilter(displays=frozenset({Display.WITHDRAWN})),
    Cell.FAILED: StatusFilter(failed=True),
    Cell.LAST_ATTEMPT_FAILED: StatusFilter(
        displays=frozenset({Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED})
    ),
    Cell.STALE: StatusFilter(displays=frozenset({Display.STALE})),
    Cell.MISSING: StatusFilter(missing=True),
    Cell.PENDING: StatusFilter(displays=frozenset({Display.NEVER_MATERIALIZED})),
}
"""Among which lines those are that show as what is worth a look; in the order of badness."""


_ENDINGS: dict[Stage | None, str] = {
    Stage.EXTRACT: "not fetched",
    Stage.VALIDATE: "rejected",
    Stage.LOAD: "not staged",
}


def cell_of_line(line: StatusLine) -> Cell:
    """Return what a line shows as, but for what just runs."""
    if line.display in _DISPLAYS:
        cell = _DISPLAYS[line.display]
        return Cell.PROVISIONAL if cell is Cell.MATERIALIZED and line.provisional else cell
    if line.last_attempt_outcome is AttemptOutcome.FAILED:
        return Cell.FAILED
    return Cell.PENDING if line.attempted else Cell.MISSING


def worst_lines(
    reader: StatusReader,
    expectations: Expectations,
    selection: Selection,
    where: StatusFilter,
    *,
    after: PartitionKey | None = None,
) -> Iterator[StatusLine]:
    """Yield the lines that are asked for, the worst first, then in the order of keys; from behind one on."""
    begin = None if after is None else cell_of_line(reader.line(after, expectations))
    cells = list(_FOUND_BY)
    for cell in cells[0 if begin not in cells else cells.index(begin) :]:
        found = iter_lines(
            reader, expectations, selection, _FOUND_BY[cell], after=after if cell is begin else None
        )
        for line in found:
            if cell_of_line(line) is cell and where.takes(line):
                yield line


def listed_lines(
    book: BookReader, selection: Selection, where: StatusFilter, *, after: PartitionKey | None = None
) -> Iterator[StatusLine]:
    """Yield the lines that are asked for: partitions that are named in the order given, else worst first."""
    reader, expectations = book.ledger.statuses, book.expectations()
    if not selection.keys:
        yield from worst_lines(reader, expectations, selection, where, after=after)
    for key in selection.keys:
        line = reader.line(key, expectations)
        if where.takes(line):
            yield line


def why_of_line(line: StatusLine) -> str:
    """Say in a few words what is not as it should be."""
    said = []
    if line.last_attempt_outcome is AttemptOutcome.FAILED and not _came_good(line):
        said.append(_ENDINGS.get(line.last_attempt_stage, "failed"))
    said += line.stale_reasons
    if line.late and StaleCode.FRESHNESS_POLICY not in line.stale_reasons:
        said.append("past its deadline")
    if line.availability is Availability.BEHIND:
        said.append("behind")
    if not line.expected:
        said.append("not expected")
    elif not line.due:
        said.append("not due")
    return ", ".join(said)


def _came_good(line: StatusLine) -> bool:
    attempted, published = line.last_attempt_at, line.last_materialization_at
    return attempted is not None and published is not None and attempted <= published


class Shown(NamedTuple):
    """A partition as it is listed: how it stands, and what is to be done next, if anything is open."""

    line: StatusLine
    outlook: Outlook | None

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of its key first."""
        fields = self.line._asdict()
        del fields["key"]
        schedule = None if self.outlook is None else self.outlook.to_dict()
        return {**asdict(self.line.key), **fields, "schedule": schedule}


def page_of(book: BookReader, lines: Iterator[StatusLine], limit: int) -> tuple[list[Shown], bool]:
    """Return the first lines with what the schedule says of them, and whether there are more."""
    found = list(islice(lines, limit + 1))
    outlooks = Outlooks(book.ledger.schedule, book.ledger.now())
    return list(starmap(Shown, outlooks.beside(found[:limit]))), len(found) > limit
