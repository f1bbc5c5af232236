"""The steps of runs, in the log: each is begun before its work, and ended however the work ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ulid import ULID

from sealbook.ledger import Ledger
from sealbook.ledger.events import Projectors
from sealbook.model import PartitionKey, RunId
from sealbook.model.claims import Fences
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage
from sealbook.model.selection import Selection
from sealbook.stopping import uninterrupted
from sealbook.tracing import traced


@dataclass(frozen=True, slots=True)
class Steps:
    """The same step of several runs, by the number of its attempt. A run that has ended has none."""

    attempts: Mapping[RunId, int]
    fallback: str
    """Tells facts about partitions of ended runs apart from those of earlier commands."""
    _ledger: Ledger = field(repr=False)
    _projector: Projectors = field(repr=False)

    def attempt(self, run_id: RunId) -> str:
        """Return what a fact of this step names as its attempt."""
        return str(self.attempts.get(run_id, self.fallback))

    def record(
        self, facts: Iterable[PartitionSealed | PartitionFailed] = (), under: Fences | None = None
    ) -> list[PartitionKey]:
        """Append facts, and take what has happened into the projections, which are never far behind then.

        What is worked on `under` claims and no longer held is left out, and returned.
        """
        lost = self._ledger.runs.tell(facts, under)
        self._projector.catch_up()
        return lost


def reason(error: BaseException) -> str:
    """Return what a step says that was ended by an error, or by somebody who stopped it."""
    return str(error) or type(error).__name__ if isinstance(error, Exception) else "stopped"


@contextmanager
def steps_of(
    ledger: Ledger,
    stage: Stage,
    runs: Iterable[RunId],
    *,
    planned: Iterable[Selection] = (),
    concerned: Iterable[RunId] = (),
) -> Iterator[Steps]:
    """Begin a step of each run, and end it with the block: completed, or failed if that broke off.

    Then the runs that have nothing left to do are ended, and others that the block may have `concerned`. The
    projections are caught up as it goes, so that runs and status are right without a daemon.
    """
    begun = set(runs)
    open_attempts: Mapping[RunId, int] = {}
    steps = Steps(open_attempts, str(ULID()), ledger, ledger.projector())
    with traced(stage, begun):
        try:
            # A stop may come at any moment: none of these is left half done.
            with uninterrupted():
                open_attempts = ledger.runs.open_steps(stage, begun, planned)
                steps = replace(steps, attempts=open_attempts)
            steps.record()
            yield steps
            with uninterrupted():
                ledger.runs.close_steps(stage, open_attempts)
                open_attempts = {}
                ledger.runs.end_runs({*steps.attempts, *concerned})
        except BaseException as error:
            with uninterrupted():
                ledger.runs.close_steps(stage, open_attempts, reason(error))
            raise
        finally:
            with uninterrupted():
                steps.record()
