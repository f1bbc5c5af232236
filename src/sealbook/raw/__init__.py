"""Sealed raw partitions on a folder or an object store (R-RAW-1 to R-RAW-4)."""

from sealbook.raw.leftovers import Leftover
from sealbook.raw.lines import Row
from sealbook.raw.metadata import RawMetadata
from sealbook.raw.reader import SealedPartition
from sealbook.raw.sealing import Payload
from sealbook.raw.store import RawReader, RawStore, SealedRun

__all__ = [
    "Leftover",
    "Payload",
    "RawMetadata",
    "RawReader",
    "RawStore",
    "Row",
    "SealedPartition",
    "SealedRun",
]
