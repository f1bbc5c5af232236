"""Cuts: versions of the warehouse that stay readable, exactly as they were (R-WH-7).

A cut is one row, whatever the size of the warehouse: the pointers' own history says what held at its version.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, true

from sealbook.errors import Conflict
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.append import append_new, lock_runs
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import READABLE
from sealbook.ledger.pointers.hiding import Unsafe, find_still_unsafe, find_unsafe, hide
from sealbook.ledger.pointers.published import unknown_cut
from sealbook.ledger.pointers.tables import cut
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model.publication import Cut, check_cut_name
from sealbook.model.verdict import check_text

_UNREADABLE = READABLE.is_not(true())


class CutWriter:
    """The port of whoever pins what is published, for later."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def create_cut(
        self, name: str | None = None, *, note: str | None = None, actor: str | None = None
    ) -> Cut:
        """Pin what can be read at this instant; the token is the name, or made from the version, as in `v42`.

        Pointers that readers no longer see, but that no loader has hidden yet, are hidden first: all of them,
        whatever is noted as changed, since a cut goes by pointers alone (R-WH-8). With an `actor` the log of
        overrides tells who pinned it, and the note why.
        """
        if name is not None:
            check_cut_name(name)
        if note is not None:
            check_text("note", note)
        if actor is not None:
            check_author(actor, note or "")
        with self._database.read() as connection:
            unsafe = find_unsafe(connection, _UNREADABLE, EVERYTHING, full=True)
        return self._database.write(lambda connection: self._create(connection, name, note, actor, unsafe))

    def drop_cut(self, token: str) -> None:
        """Let go of a cut: what only it has pinned can be removed."""

        def work(connection: Connection) -> None:
            if connection.execute(delete(cut).where(cut.c.token == token)).rowcount == 0:
                raise unknown_cut(token)

        self._database.write(work)

    def _create(
        self,
        connection: Connection,
        name: str | None,
        note: str | None,
        actor: str | None,
        earlier: Sequence[Unsafe],
    ) -> Cut:
        before, changed_at = rows.lock_version(connection)
        unsafe = find_still_unsafe(connection, _UNREADABLE, EVERYTHING, earlier)
        lock_runs(connection, {each.artifact.run_id for each in unsafe})
        at = self._clock.now(connection, not_before=changed_at)
        version = before + 1
        made = Cut(name or f"v{version}", version, at, note)
        if connection.execute(select(cut).where(cut.c.token == made.token)).one_or_none() is not None:
            raise Conflict(
                f"there is a cut {made.token!r} already",
                remedy="Choose another name, or drop that cut first: `sealbook warehouse cut drop`.",
            )
        rows.set_version(connection, version, at)
        hidden = hide(connection, unsafe, version, at)
        values = {"token": made.token, "version": version, "created_at": at, "note": note}
        connection.execute(insert(cut).values(values))
        if actor is not None:
            chosen: dict[str, object] = {"cut": made.token}
            log_override(connection, Action.CUT, (), actor=actor, reason=note or "", at=at, filter=chosen)
        append_new(connection, [fact.to_event() for fact in hidden], at)
        return made
