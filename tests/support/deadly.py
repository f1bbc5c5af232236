"""Raw partitions that do to whoever reads them what no line should be able to do."""

from __future__ import annotations

import os
import signal

from sealbook.model import PartitionKey
from sealbook.raw import RawReader
from sealbook.raw.reader import SealedPartition


class DeadlyRaw(RawReader):
    """Kills the process that reads a run of a customer `kills…`; raises what nobody foresaw at `breaks…`."""

    def read(self, key: PartitionKey, run_id: str) -> SealedPartition:
        """Read a sealed run, if it lets one."""
        if key.customer_id.startswith("kills"):
            os.kill(os.getpid(), signal.SIGKILL)
        if key.customer_id.startswith("breaks"):
            raise ZeroDivisionError("nobody foresaw this")
        return super().read(key, run_id)
