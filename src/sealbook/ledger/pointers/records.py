"""Load records: what was ever loaded, for ever, and which files hold it as long as they are kept (R-WH-2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Select, not_, select

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.pointers.conditions import TAKEN, removal_of
from sealbook.ledger.pointers.locations import loaded
from sealbook.ledger.pointers.tables import load_record, removal
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import conditions
from sealbook.model.artifacts import LoadRecord, StoredArtifact
from sealbook.model.selection import Selection

_RECORD = loaded(LoadRecord._fields)
STORED = [*_RECORD, *loaded(("format", "copy", "part_digests")), not_(TAKEN)]
"""The columns of a StoredArtifact, for a query that is outer-joined with removals."""


def stored(*row: Any) -> StoredArtifact:
    """Make a StoredArtifact of the columns of STORED."""
    return StoredArtifact(LoadRecord(*row[: len(_RECORD)]), *row[len(_RECORD) :])


class RecordReader:
    """The port of whoever asks what was loaded, and verifies it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_records(self, selection: Selection = EVERYTHING) -> Iterator[LoadRecord]:
        """Stream the load records of all that was ever loaded, in key order, then by run."""
        query = self._chosen(select(*_RECORD), selection)
        return stream(self._database, query, LoadRecord)

    def stored_artifacts(self, selection: Selection = EVERYTHING) -> Iterator[StoredArtifact]:
        """Stream the artifacts whose files must be there, in the same order."""
        query = self._chosen(select(*STORED), selection)
        kept = query.outerjoin(removal, removal_of(load_record)).where(not_(TAKEN))
        return stream(self._database, kept, stored)

    def _chosen(self, query: Select[Any], selection: Selection) -> Select[Any]:
        chosen = conditions(self._database.dialect, load_record, selection)
        return query.where(*chosen).order_by(*load_record.primary_key)
