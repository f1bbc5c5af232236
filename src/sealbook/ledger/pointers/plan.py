"""What a load has to do, found by comparing state with pointers (R-WH-1). Reading never writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, case, func, not_, or_, select

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same, stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.conditions import (
    ACTION,
    DIFFERS,
    NEXT_COPY,
    OPEN,
    STATUS,
    SUCCESS,
    TAKEN,
    changed_keys,
    pointer_of,
    record_of,
    removal_of,
)
from sealbook.ledger.pointers.records import STORED, stored
from sealbook.ledger.pointers.tables import (
    BY_QUERY,
    authority_change,
    load_record,
    pointer,
    removal,
    warehouse_version,
)
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import attempt, partition_state
from sealbook.model import PartitionKey, RunId, Status
from sealbook.model.artifacts import FORMAT, Action, PlanItem, Replacement
from sealbook.model.publication import Difference, Pointer, PointerStatus
from sealbook.model.selection import Selection

_ACTION = {action.value: action for action in Action}
_VERSION = select(warehouse_version.c.version).scalar_subquery()


class PlanReader:
    """The port of whoever plans a load or verifies one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def plan(self, selection: Selection = EVERYTHING, *, full: bool = False) -> Iterator[PlanItem]:
        """Stream what a load has to do, in key order: load, replace and hide, and nothing else (R-WH-1).

        It looks where an authority was noted as changed; `full` compares everything (R-WH-8).
        """
        changed, differing = self._differing(selection, full=full)
        key = [changed.c[name] for name in KEY]
        authority = [partition_state.c[name] for name in ("current_run_id", "schema_version", "record_count")]
        files_run_id = func.coalesce(load_record.c.files_run_id, partition_state.c.current_run_id)
        loaded_before, removed_since = (
            and_(SUCCESS, same(table, partition_state, "schema_version"), table.c.run_id == run_id)
            for table, run_id in (
                (load_record, partition_state.c.current_run_id),
                (removal, files_run_id),
            )
        )
        query = (
            differing.add_columns(*key, ACTION, *(case((SUCCESS, each)) for each in authority))
            .add_columns(pointer.c.run_id, NEXT_COPY, *STORED)
            .outerjoin(load_record, loaded_before)
            .outerjoin(removal, removed_since)
            .order_by(*key)
        )
        return stream(self._database, query, _plan_item)

    def replacements(self, selection: Selection = EVERYTHING, *, full: bool = False) -> Iterator[Replacement]:
        """Stream the runs that are to replace a published one whose files are kept, in key order.

        Such a run may be the same if it is of the same version, was judged by the same validator, has the
        same number of records, and was never loaded.
        """
        _, differing = self._differing(selection, full=full)
        query = (
            differing.add_columns(partition_state.c.current_run_id, _MAYBE_SAME, *STORED)
            .join(load_record, record_of(pointer))
            .outerjoin(removal, removal_of(load_record))
            .where(SUCCESS, partition_state.c.current_run_id != pointer.c.run_id, not_(TAKEN))
            .order_by(*(pointer.c[name] for name in KEY))
        )
        return stream(self._database, query, _replacement)

    def plan_counts(self, selection: Selection = EVERYTHING, *, full: bool = False) -> dict[Action, int]:
        """Count what a load has to do, by action; every action is there, be it with 0."""
        _, differing = self._differing(selection, full=full)
        query = differing.add_columns(ACTION.label("action"), func.count()).group_by("action")
        with self._database.read() as connection:
            found = {_ACTION[name]: count for name, count in connection.execute(query)}
        return {action: found.get(action, 0) for action in Action}

    def pointers(self, selection: Selection = EVERYTHING) -> Iterator[Pointer]:
        """Stream the latest pointer of every partition, also if unavailable, by query and in key order."""
        later = pointer.alias("later")
        superseded = select(later.c.run_id).where(
            same(later, pointer), later.c.valid_from > pointer.c.valid_from
        )
        query = (
            select(pointer)
            .where(*conditions(self._database.dialect, pointer, selection))
            .where(or_(OPEN, not_(superseded.exists())))
            .order_by(*(pointer.c[name] for name in BY_QUERY))
        )
        return stream(self._database, query, Pointer)

    def open_pointers(self, selection: Selection = EVERYTHING) -> Iterator[Pointer]:
        """Stream the pointers that hold now, in key order."""
        query = (
            select(pointer)
            .where(OPEN, *conditions(self._database.dialect, pointer, selection))
            .order_by(*(pointer.c[name] for name in KEY))
        )
        return stream(self._database, query, Pointer)

    def differences(self, selection: Selection = EVERYTHING) -> Iterator[Difference]:
        """Stream every field in which pointers do not mirror states, in key order (R-WH-8).

        This compares all of them, as a full plan does, and says of each whether a change is noted.
        """
        changed, differing = self._differing(selection, full=True)
        key = [changed.c[name] for name in KEY]
        noted = select(authority_change.c.id).where(same(authority_change, changed)).exists()
        query = (
            differing.add_columns(*key, noted, STATUS)
            .add_columns(pointer.c.run_id, partition_state.c.current_run_id)
            .add_columns(pointer.c.schema_version, partition_state.c.schema_version)
            .add_columns(load_record.c.record_count, partition_state.c.record_count)
            .outerjoin(load_record, record_of(pointer))
            .order_by(*key)
        )
        for differences in stream(self._database, query, _differences):
            yield from differences

    def version(self) -> int:
        """Return the warehouse's version, which goes up with every swap, hide and cut."""
        with self._database.read() as connection:
            version: int = connection.execute(select(_VERSION)).scalar_one()
        return version

    def _differing(self, selection: Selection, *, full: bool) -> tuple[FromClause, Select[Any]]:
        """Return the changed keys as a table, and a query, without columns yet, of those that need a load."""
        changed = changed_keys(self._database.dialect, selection, full=full)
        query = (
            select()
            .select_from(changed)
            .outerjoin(partition_state, same(partition_state, changed))
            .outerjoin(pointer, pointer_of(changed))
            .where(DIFFERS)
        )
        return changed, query


def _judged_by(run_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the validator of a run's latest judgement, which its contract is a part of."""
    return (
        select(attempt.c.validator_id)
        .where(same(attempt, partition_state), attempt.c.run_id == run_id)
        .order_by(attempt.c.attempt.desc())
        .limit(1)
        .correlate(partition_state, pointer)
        .scalar_subquery()
    )


_known = load_record.alias("known")
_IS_KNOWN = (
    select(_known.c.run_id)
    .where(
        same(_known, partition_state, "schema_version"),
        _known.c.run_id == partition_state.c.current_run_id,
    )
    .correlate(partition_state)
    .exists()
)
_MAYBE_SAME = and_(
    partition_state.c.schema_version == pointer.c.schema_version,
    partition_state.c.record_count == load_record.c.record_count,
    load_record.c.format == FORMAT,
    not_(_IS_KNOWN),
    _judged_by(partition_state.c.current_run_id) == _judged_by(pointer.c.run_id),
)


def _replacement(run_id: RunId, maybe_same: object, *row: Any) -> Replacement:
    return Replacement(run_id, bool(maybe_same), stored(*row))


def _plan_item(
    source: str, customer_id: str, query_name: str, logical_date: date, action: str, *rest: Any
) -> PlanItem:
    planned, earlier = rest[:5], rest[5:]
    item = PlanItem(source, customer_id, query_name, logical_date, _ACTION[action], *planned)
    return item if earlier[0] is None else item._replace(earlier=stored(*earlier))


def _differences(*row: Any) -> list[Difference]:
    *key, noted, status, run_id, current_run_id, version, current_version, loaded, accepted = row
    compared: dict[str, tuple[object, object]]
    if status is not Status.SUCCESS:
        compared = {"status": (PointerStatus.AVAILABLE, status)}
    elif run_id is None:
        compared = {"run_id": ("no pointer", current_run_id)}
    elif (run_id, version) != (current_run_id, current_version):
        compared = {"run_id": (run_id, current_run_id), "schema_version": (version, current_version)}
    else:
        compared = {"record_count": ("no load record" if loaded is None else loaded, accepted)}
    return [
        Difference(PartitionKey(*key), field, str(pointed), str(stated), noted=bool(noted))
        for field, (pointed, stated) in compared.items()
        if pointed != stated
    ]
