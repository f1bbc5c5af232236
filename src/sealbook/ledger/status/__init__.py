"""Partition status: projected from the log, held against what is expected when it is read (R-PST)."""

from sealbook.ledger.status.projection import PartitionStatuses
from sealbook.ledger.status.reader import StatusReader
from sealbook.ledger.status.sweep import StatusSweeper

__all__ = ["PartitionStatuses", "StatusReader", "StatusSweeper"]
