"""A payload at which whoever reads it has to wait: so that a process is killed at a known place."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

LONGEST_WAIT_SECONDS = 200


class Gate:
    """Holds up the readers of a file, from now until it is opened: a FIFO in its place."""

    def __init__(self, file: Path) -> None:
        self._file = file.resolve()
        self._content = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        self._writer: int | None = None

    def wait_for_reader(self) -> psutil.Process:
        """Return the process that reads the file, once it has been given half of it."""
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while self._writer is None:
            assert time.monotonic() < deadline, "nobody has come to read"
            try:
                self._writer = os.open(self._file, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # there is no reader yet
                time.sleep(0.01)
        os.write(self._writer, self._content[: len(self._content) // 2])
        while True:  # the reader, which was waiting to open the file, has it open any moment now
            for process in psutil.process_iter():
                if self._is_read_by(process):
                    return process
            assert time.monotonic() < deadline, "the reader has gone"

    def open(self) -> None:
        """Put the file back; who still waits at the gate gets no more than half of it."""
        draft = self._file.with_name("_draft")
        draft.write_bytes(self._content)
        draft.rename(self._file)
        if self._writer is not None:
            os.close(self._writer)

    def pass_on(self) -> None:
        """Let the reader that was waited for have the other half, and put the file back."""
        assert self._writer is not None
        os.write(self._writer, self._content[len(self._content) // 2 :])
        self.open()

    def _is_read_by(self, process: psutil.Process) -> bool:
        if process.pid == os.getpid():
            return False
        descriptors = Path(f"/proc/{process.pid}/fd")
        try:
            return any(entry.readlink() == self._file for entry in descriptors.iterdir())
        except OSError:  # it has ended, or is somebody else's
            return False
