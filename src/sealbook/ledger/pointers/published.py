"""What readers see: for each partition the rows of exactly one run. Reading never writes.

Each answer comes from one statement, so it is that of one instant (R-CON-1). The statement joins pointers and
states: what a verdict demotes is out of sight in the verdict's own transaction (R-WH-5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime
from typing import Any

from sqlalchemy import Boolean, ColumnElement, and_, false, not_, select, type_coerce

from sealbook.errors import NotFound
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key, same, stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.change_feed import read_changes, token_of_now
from sealbook.ledger.pointers.changes import count_changes
from sealbook.ledger.pointers.conditions import AT_CUT, CURRENT, READABLE, WITHDRAWN
from sealbook.ledger.pointers.coverage import covered, covered_at, every_partition, known, left_out_if_strict
from sealbook.ledger.pointers.locations import loaded
from sealbook.ledger.pointers.tables import BY_QUERY, STAGED, cut, load_record, pointer
from sealbook.ledger.pointers.view import read_freshest
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.model import PartitionKey
from sealbook.model.keys import check_key
from sealbook.model.publication import (
    Change,
    Coverage,
    CoverageKind,
    Cut,
    Freshest,
    Pointer,
    Published,
    Withdrawal,
)
from sealbook.model.published_changes import Changes, ChangeToken
from sealbook.model.selection import Selection

BEGINNING = ChangeToken()
"""Before anything was published."""

_POINTED = [pointer.c[name] for name in (*KEY, "run_id", "schema_version")]
_LOADED = loaded((*STAGED, "loaded_at"))
_ORDER = [pointer.c[name] for name in BY_QUERY]


class PublishedReader:
    """The port of consumers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def published(
        self, selection: Selection = EVERYTHING, *, strict: bool = False, cut: str | None = None
    ) -> Iterator[Published]:
        """Stream the partitions that can be read, by query and in key order, each with its one run (R-CON-1).

        A run that is not the authority's any more is `behind`; `strict` leaves those out (R-CON-2). A `cut`
        gives what could be read when it was made, whatever happened since; what is `withdrawn` by now,
        `strict` leaves out (R-WH-7).
        """
        asked = conditions(self._database.dialect, pointer, selection)
        if cut is not None:
            found = self._published_at(cut, asked)
            return (each for each in found if each.withdrawn is None) if strict else found
        if strict:
            asked.append(CURRENT)
        query = (
            select(*_POINTED, *_LOADED, type_coerce(not_(CURRENT), Boolean))
            .join(partition_state, same(partition_state, pointer))
            .join(load_record, same(load_record, pointer, "run_id", "schema_version"))
            .where(*asked, READABLE)
            .order_by(*_ORDER)
        )
        return stream(self._database, query, Published)

    def coverage(
        self,
        query_name: str,
        *,
        source: str,
        customers: Collection[str],
        since: date,
        until: date,
        strict: bool = False,
        cut: str | None = None,
    ) -> Iterator[Coverage]:
        """Say of every partition asked for what a read gets of it, and why not more, in key order (R-CON-3).

        `strict` is that of the read. At a cut a partition was either readable or not: what it was besides,
        the cut does not keep; but what was withdrawn since is said.
        """
        chosen = Selection(source=source, customers=customers, queries=query_name, since=since, until=until)
        if cut is None:
            asked = conditions(self._database.dialect, partition_state, chosen)
            found = stream(self._database, known(*asked), covered)
            why = "nobody has attempted it"
        else:
            asked = conditions(self._database.dialect, pointer, chosen)
            found = map(covered_at, self._published_at(cut, asked))
            why = f"it could not be read when cut {cut} was made"
        found = map(left_out_if_strict, found) if strict else found

        def missing(customer_id: str, day: date) -> Coverage:
            return Coverage(source, customer_id, query_name, day, CoverageKind.MISSING, None, why)

        return every_partition(found, customers, since, until, missing)

    def pointer(self, key: PartitionKey) -> Pointer | None:
        """Return the latest pointer of a partition, also if unavailable; None if it never had one."""
        return next(reversed(self.history(key)), None)

    def history(self, key: PartitionKey) -> list[Pointer]:
        """Return every pointer that a partition has had, oldest first."""
        check_key(key)
        query = select(pointer).where(*at_key(pointer, key)).order_by(pointer.c.valid_from)
        with self._database.read() as connection:
            return [Pointer(*row) for row in connection.execute(query)]

    def pointer_history(self, selection: Selection) -> Iterator[Pointer]:
        """Stream every pointer that chosen partitions have had, by query and in key order, oldest first."""
        asked = conditions(self._database.dialect, pointer, selection)
        query = select(pointer).where(*asked).order_by(*_ORDER, pointer.c.valid_from)
        return stream(self._database, query, Pointer)

    def cuts(self) -> list[Cut]:
        """Return all cuts, oldest first."""
        with self._database.read() as connection:
            return [Cut(*row) for row in connection.execute(select(cut).order_by(cut.c.version))]

    def cut(self, token: str) -> Cut:
        """Return the cut of a token; NotFound if there is none."""
        with self._database.read() as connection:
            row = connection.execute(select(cut).where(cut.c.token == token)).one_or_none()
        if row is None:
            raise unknown_cut(token)
        return Cut(*row)

    def token(self, text: str | None = None) -> ChangeToken:
        """Return the instant of a token or of a cut; without one, the present."""
        if text is None:
            with self._database.read() as connection:
                return token_of_now(connection)
        return ChangeToken.parse(text) if ChangeToken.is_one(text) else ChangeToken(self.cut(text).version)

    def changes(
        self,
        selection: Selection = EVERYTHING,
        after: ChangeToken = BEGINNING,
        limit: int | None = None,
        *,
        until: ChangeToken | None = None,
    ) -> Changes:
        """Return each change of the run that consumers get of a partition after an instant (R-CON-5).

        With a limit, about so many; the token that comes along is where the next ones follow. `until` is
        where they end; changes between two tokens are the same whenever they are asked for.
        """
        with self._database.read() as connection:
            return read_changes(connection, selection, after, until, limit)

    def count_changes(self, selection: Selection, since: datetime | Cut) -> dict[Change, int]:
        """Count the partitions that are chosen by how what is published of them changed since."""
        with self._database.read() as connection:
            return count_changes(connection, selection, since)

    def freshest(self) -> list[Freshest]:
        """Return of each query that can be read how much, and how fresh, from `published_partition`."""
        with self._database.read() as connection:
            return read_freshest(connection)

    def _published_at(self, token: str, asked: list[ColumnElement[bool]]) -> Iterator[Published]:
        query = (
            select(*_POINTED, *_LOADED, false(), WITHDRAWN)
            .select_from(cut)
            .outerjoin(pointer, and_(AT_CUT, *asked))
            .outerjoin(load_record, same(load_record, pointer, "run_id", "schema_version"))
            .where(cut.c.token == token)
            .order_by(*_ORDER)
        )
        # A cut with nothing of what is asked for gives one row, without a key; no cut gives no row.
        exists = False
        for each in stream(self._database, query, _published_at):
            exists = True
            if each.source is not None:
                yield each
        if not exists:
            raise unknown_cut(token)


def unknown_cut(token: str) -> NotFound:
    """Say that there is no such cut."""
    return NotFound(f"there is no cut {token!r}", remedy="`sealbook warehouse cut list` lists the cuts.")


def _published_at(*row: Any) -> Published:
    *fields, withdrawn = row
    return Published(*fields)._replace(withdrawn=None if withdrawn is None else Withdrawal(withdrawn))
