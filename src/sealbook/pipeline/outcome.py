"""What came of a run, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sealbook.extract.results import Extracted, ExtractOutcome
from sealbook.load.results import Loaded, LoadOutcome
from sealbook.model import RunId, RunStatus
from sealbook.model.partition_events import Stage
from sealbook.validate.results import ValidateOutcome

if TYPE_CHECKING:
    from sealbook.validate.results import Result


class StageBatch(NamedTuple):
    """Results of one stage: Extracted, Judged or NotJudged, or Loaded."""

    stage: Stage
    results: list[Extracted] | list[Result] | list[Loaded]


@dataclass
class RunOutcome:
    """What came of a run through all stages; `status` is where it stands after them."""

    run_id: RunId
    extract: ExtractOutcome
    validate: ValidateOutcome = field(default_factory=ValidateOutcome)
    load: LoadOutcome = field(default_factory=LoadOutcome)
    status: RunStatus = RunStatus.PENDING

    @classmethod
    def of(cls, run_id: RunId) -> RunOutcome:
        """Return the outcome of a run of which nothing is done yet."""
        return cls(run_id, ExtractOutcome(run_id))

    def add(self, batch: StageBatch) -> None:
        """Count the results of a batch."""
        outcomes: dict[Stage, Any] = {
            Stage.EXTRACT: self.extract,
            Stage.VALIDATE: self.validate,
            Stage.LOAD: self.load,
        }
        outcomes[batch.stage].add(batch.results)
