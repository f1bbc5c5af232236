"""The sweep: what is stale is written down beside each row, for who reads the table alone (R-PST-7)."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection, select

from sealbook.ledger.db.bulk import update_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.types import microseconds
from sealbook.ledger.events.tables import projection
from sealbook.ledger.status.asking import Asked
from sealbook.ledger.status.lines import swept_rows
from sealbook.ledger.status.projection import projection_name
from sealbook.ledger.status.reader import ask_for
from sealbook.ledger.status.tables import partition_status
from sealbook.model.expectations import Expectations
from sealbook.model.scope import DEFAULT_SCOPE, Scope
from sealbook.model.selection import Selection

_SWEPT = ("stale_since", "stale_reason", "changed_at")


class StatusSweeper:
    """The port of whoever sweeps. Readers compute what is stale by themselves, and need no sweep."""

    def __init__(self, database: Database, clock: LedgerClock, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._clock = clock
        self._name = projection_name(scope)

    def sweep(self, expectations: Expectations, selection: Selection | None = None) -> int:
        """Write down since when and why partitions are stale, or not any more; return how many rows changed.

        A row that changed has a `row_version` of this moment.
        """
        with self._database.read() as connection:
            asked = ask_for(connection, self._name, expectations, selection or Selection())

        def work(part: Asked, connection: Connection) -> int:
            # Projectors wait meanwhile: what is swept is of the materialization that the row still has.
            locked = select(projection.c.id).where(projection.c.name == self._name)
            connection.execute(locked.with_for_update())
            at = microseconds(self._clock.now(connection))
            changed = []
            for row, code, since in swept_rows(connection, part):
                found = (None, None) if since is None else (microseconds(since), code)
                if found != (row.stale_since, row.stale_reason):
                    now = row._replace(stale_since=found[0], stale_reason=found[1], changed_at=at)
                    changed.append(now)
            if changed:
                update_rows(connection, partition_status, changed, _SWEPT)
            return len(changed)

        return sum(self._database.write(partial(work, part)) for part in asked.parts())
