"""How a run differs from the published one that it is to replace, found where it is staged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from sealbook.errors import SealbookError
from sealbook.model.artifacts import StoredArtifact
from sealbook.model.contract import Contract
from sealbook.model.drift import Drift
from sealbook.rows.comparing import compare_rows
from sealbook.rows.problems import Defect
from sealbook.warehouse.checking import take_parts
from sealbook.warehouse.part_files import PartFiles


@dataclass(frozen=True, slots=True)
class Replaced:
    """A published run that another is to replace, and how old the day was when that was opened."""

    published: StoredArtifact
    age: timedelta

    def not_compared(self, problem: str) -> Drift:
        """Return that there is a drift, which nobody has looked at."""
        return Drift(self.published.record.run_id, self.age, problem=problem)


@dataclass(frozen=True)
class DriftComparer:
    """Compares the rows of a run with those of the published one.

    Both are held in memory, so each must be of one part, which is bounded. Whatever goes wrong is said in
    what is recorded: a load does not fail for it.
    """

    files: PartFiles

    def __call__(self, contract: Contract, replaced: Replaced, rows: pa.Table) -> Drift:
        """Return what differs, or why that is not known."""
        record = replaced.published.record
        if record.schema_version != contract.schema_version:
            return replaced.not_compared(
                f"schema_version {record.schema_version} was replaced by {contract.schema_version}"
            )
        if record.parts > 1:
            return replaced.not_compared("the artifact that it replaces is too large")
        try:
            [before] = take_parts(
                self.files, replaced.published.published, lambda part: part.read(use_threads=False)
            )
            shared = [
                field.name
                for field in rows.schema
                if field.name in before.column_names and before.schema.field(field.name).type == field.type
            ]
            primary_key = contract.primary_key if set(contract.primary_key) <= set(shared) else ()
            if not shared:
                return replaced.not_compared("they have no column in common")
            diff = compare_rows(before.select(shared), rows.select(shared), primary_key, limit=0)
            return Drift.of(record.run_id, replaced.age, diff)
        except SealbookError as error:
            return replaced.not_compared(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the run can be published
            return replaced.not_compared(Defect.of(error).reason)
