"""Artifacts to publish, loads without a warehouse, and what readers see of them."""

from __future__ import annotations

from datetime import date
from hashlib import sha256
from typing import Any

from sealbook.ledger import Ledger
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Action, Artifact, PlanItem, Staged, SwapResult
from sealbook.model.selection import Selection
from tests.support.ledger import KEY, run_id

SINCE, UNTIL = date(2026, 1, 1), date(2026, 1, 2)
"""The days of KEY and OTHER."""


def artifact(key: PartitionKey = KEY, run: int = 1, version: str = "1") -> Artifact:
    """Return the identity of a run's artifact."""
    return Artifact(key, run_id(run), version)


def staged(
    key: PartitionKey = KEY,
    run: int = 1,
    *,
    version: str = "1",
    records: int = 10,
    copy: int = 0,
    content: str = "",
) -> Staged:
    """Return an artifact as if it were written; the same run has the same digest, unless content is given."""
    return _written(artifact(key, run, version), records, copy, content)


def staged_run(key: PartitionKey, run: RunId, records: int = 10) -> Staged:
    """Return an artifact of a run that the ledger opened, as if it were written."""
    return _written(Artifact(key, run, "1"), records, 0)


def stage(item: PlanItem) -> Staged:
    """Do what a loader does for an item of its plan, without writing anything."""
    assert item.run_id is not None
    assert item.schema_version is not None
    assert item.record_count is not None
    artifact = Artifact(item.key, item.run_id, item.schema_version)
    return _written(artifact, item.record_count, copy_to_stage(item))


def copy_to_stage(item: PlanItem) -> int:
    """Return the copy that a loader finds, or else writes."""
    return item.earlier.copy if item.earlier is not None and item.earlier.kept else item.copy


def load(ledger: Ledger, selection: Selection = EVERYTHING, *, full: bool = False) -> SwapResult:
    """Do a whole load."""
    ledger.pointers.hide(selection, full=full)
    plan = ledger.pointers.plan(selection, full=full)
    return ledger.pointers.swap([stage(item) for item in plan if item.action is not Action.HIDE])


def seen(
    ledger: Ledger,
    query_name: str = KEY.query_name,
    *,
    strict: bool = False,
    cut: str | None = None,
    **asked: Any,
) -> dict[PartitionKey, RunId]:
    """Return the run that a reader sees of each partition."""
    selection = Selection(queries=query_name, **asked)
    published = list(ledger.pointers.published(selection, strict=strict, cut=cut))
    runs = {each.key: each.run_id for each in published}
    assert len(runs) == len(published)
    return runs


def planned(
    ledger: Ledger, selection: Selection = EVERYTHING, *, full: bool = False
) -> list[tuple[Action, PartitionKey]]:
    """Return what a load would do, and check that the counts say the same."""
    items = [(item.action, item.key) for item in ledger.pointers.plan(selection, full=full)]
    counts = {action: sum(each is action for each, _ in items) for action in Action}
    assert ledger.pointers.plan_counts(selection, full=full) == counts
    return items


def _written(identity: Artifact, records: int, copy: int, content: str = "") -> Staged:
    return Staged(
        identity,
        record_count=records,
        bytes=100 + records,
        digest=sha256(f"{identity}{content}".encode()).hexdigest(),
        location=f"{identity.key}/{identity.schema_version}/{identity.run_id}",
        copy=copy,
    )
