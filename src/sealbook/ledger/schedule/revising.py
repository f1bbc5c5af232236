"""Open work that other settings, contracts or due points make possible again; and runs that were left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.rows import OpenWork
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, RunId
from sealbook.model.work import Work

Revise = Callable[[OpenWork, datetime], Work]
"""Returns the work of a row as it is from a moment on."""


class WorkReviser:
    """The port of the control loop that takes work up again, by policy and never by itself (R-CTL-3)."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def revise(
        self, keys: Iterable[PartitionKey], revise: Revise, *, actor: str, reason: str
    ) -> list[PartitionKey]:
        """Write what becomes of open work that nobody is at; return what is not stopped any more.

        That is logged as an override, with the keys.
        """
        check_author(actor, reason)
        wanted = list(keys)
        if not wanted:
            return []

        def write(connection: Connection) -> list[PartitionKey]:
            rows = work_rows.lock(connection, wanted)
            at = self._clock.now(connection)
            changed, going = [], []
            for key, row in rows.items():
                after = row.work if row.holder is not None else revise(row, at)
                if after == row.work:
                    continue
                if after.stop is None:
                    going.append(key)
                    changed.append(replace(row, work=after).going())
                else:
                    changed.append(replace(row, work=after))
            work_rows.write(connection, changed)
            if going:
                log_override(connection, Action.CLEAR, going, actor=actor, reason=reason, at=at)
            return going

        return self._database.write(write)

    def left_runs(self) -> dict[RunId, list[PartitionKey]]:
        """Return the runs whose workers were lost, with the partitions of which their logs were not told."""
        query = select(work.c.claim_run_id, *(work.c[name] for name in KEY)).where(*_LEFT)
        left: dict[RunId, list[PartitionKey]] = defaultdict(list)
        with self._database.read() as connection:
            for run_id, *key in connection.execute(query):
                left[run_id].append(PartitionKey(*key))
        return left

    def forget_left(self, left: Mapping[RunId, Iterable[PartitionKey]]) -> None:
        """Note that the logs of these runs were told of these partitions."""
        told = {key: run_id for run_id, keys in left.items() for key in keys}
        if not told:
            return

        def forget(connection: Connection) -> None:
            rows = work_rows.lock(connection, told)
            still = (row for key, row in rows.items() if row.holder is None and row.claim_run_id == told[key])
            work_rows.write(connection, (replace(row, claim_run_id=None) for row in still))

        self._database.write(forget, repeatable=True)


_LEFT = (work.c.holder.is_(None), work.c.claim_run_id.is_not(None))
