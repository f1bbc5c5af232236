"""What commands say about the runs they work on, so that the log tells the whole story of each run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sealbook.extract.results import Extracted
from sealbook.model import RunEvent, RunId, RunSnapshot, RunStatus
from sealbook.model.pipeline_events import (
    PipelineStep,
    partition_failed,
    partition_sealed,
    run_completed,
    run_failed,
    run_started,
    step_completed,
    step_failed,
    step_started,
)

if TYPE_CHECKING:
    from sealbook.ledger.events import SqlRunStore


@dataclass
class Steps:
    """The same step of each run that a command works on, by its attempt. A run that has ended has none."""

    attempts: Mapping[RunId, int]
    _store: SqlRunStore = field(repr=False)
    _endings: dict[RunId, RunEvent] = field(default_factory=dict)

    def tell_extracted(self, results: Iterable[Extracted]) -> None:
        """Say what came of partitions' extraction."""
        self._store.append_events([self._extracted(result) for result in results])

    def complete_runs(self, runs: Iterable[RunId]) -> None:
        """Say, once the step is over, that runs came to their end."""
        self._endings.update({run: run_completed(run) for run in runs if run in self.attempts})

    def fail_runs(self, runs: Iterable[RunId], error: str) -> None:
        """Say, once the step is over, that runs ended with nothing to go on with."""
        self._endings.update({run: run_failed(run, error=error) for run in runs if run in self.attempts})

    @property
    def endings(self) -> list[RunEvent]:
        """What is to be said of runs after the step."""
        return [self._endings[run] for run in sorted(self._endings)]

    def _extracted(self, result: Extracted) -> RunEvent:
        if result.seal is None:
            return partition_failed(
                result.key,
                result.run_id,
                attempt=self.attempts.get(result.run_id, 1),
                error_class=str(result.error_class),
                error=str(result.error_message),
            )
        return partition_sealed(
            result.key,
            result.run_id,
            schema_version=result.seal.schema_version,
            record_count=result.seal.record_count,
            payload_bytes=result.seal.payload_bytes,
            payload_sha256=result.seal.payload_sha256,
            query_hash=result.seal.query_hash,
            extracted_at=result.seal.extracted_at,
        )


@contextmanager
def steps_of(store: SqlRunStore, step: PipelineStep, runs: Iterable[RunId]) -> Iterator[Steps]:
    """Open a step of each run, and close it at the end of the block: completed, or failed if it broke off.

    Then the projection is caught up, so that `sealbook runs` is right without a daemon.
    """
    snapshots = [store.get_snapshot(run) or RunSnapshot.pending(run) for run in sorted(set(runs))]
    open_runs = {RunId(each.run_id): each for each in snapshots if not each.status.final}
    steps = Steps({run: each.next_attempt(step) for run, each in open_runs.items()}, store)
    begun = [run_started(run) for run, each in open_runs.items() if each.status is RunStatus.PENDING]
    opened = [step_started(run, step, attempt=attempt) for run, attempt in steps.attempts.items()]
    store.append_events(begun + opened)
    try:
        yield steps
    except BaseException as error:
        reason = str(error) or type(error).__name__ if isinstance(error, Exception) else "stopped"
        store.append_events(
            step_failed(run, step, attempt=attempt, error=reason) for run, attempt in steps.attempts.items()
        )
        raise
    else:
        closed = [step_completed(run, step, attempt=attempt) for run, attempt in steps.attempts.items()]
        store.append_events(closed + steps.endings)
    finally:
        store.projector().catch_up()
