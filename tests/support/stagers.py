"""Stagers that are killed in the middle of their work: their worker process, or the driver with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from sealbook.load.staging import Stager, StagingResult, StagingTask
from sealbook.warehouse.store import ArtifactStore


class Moment(StrEnum):
    """When a task is killed."""

    BEFORE_STAGING = "before_staging"
    HALF_WRITTEN = "half_written"
    """A file is only half written."""
    HALF_STAGED = "half_staged"
    """Half of the task's files are where they belong, and the others are not there."""
    STAGED = "staged"
    """All is there, but nobody has been told."""


@dataclass(frozen=True)
class KilledStager(Stager):
    """Kills its worker process, the first time that it comes to a moment.

    `marker` is a file that says that it has happened. The process `driver`, if there is one, dies first.
    """

    moment: Moment = Moment.STAGED
    marker: str = ""
    driver: int = 0

    def __call__(self, task: StagingTask) -> list[StagingResult]:
        """Stage up to the moment."""
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return super().__call__(task)
        if self.moment is Moment.STAGED:
            super().__call__(task)
        elif self.moment is not Moment.BEFORE_STAGING:
            store = _KilledStore(self.artifacts.url)
            store.stager = self
            Stager.__call__(replace(self, artifacts=store), task)
        return self.die()

    def die(self) -> NoReturn:
        """End as a machine ends that loses its power."""
        if self.driver:
            os.kill(self.driver, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class _KilledStore(ArtifactStore):
    """Puts half of what it is given."""

    stager: KilledStager

    def put_all(self, objects: Mapping[str, bytes]) -> NoReturn:
        for path in list(objects)[: len(objects) // 2]:
            self.put(path, objects[path])
        if self.stager.moment is Moment.HALF_WRITTEN:
            write = Path.write_bytes

            def write_half(file: Path, data: bytes) -> NoReturn:
                write(file, data[: len(data) // 2])
                self.stager.die()

            Path.write_bytes = write_half  # type: ignore[assignment,method-assign]
            super().put_all(objects)
        self.stager.die()
