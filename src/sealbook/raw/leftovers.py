"""What no seal names: payloads of writers that died or lost, to be removed once none of them can be at work.

A payload can only be sealed within `LONGEST_WRITE` of the begin of its write. So what is older than that,
with room for clocks that differ, and is not named by its seal, is never going to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sealbook.clock import utc_now
from sealbook.errors import Corrupt, InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.raw.layout import METADATA
from sealbook.raw.listing import RunFiles, list_runs
from sealbook.raw.sealing import LONGEST_WRITE, read_seal
from sealbook.storage import Storage

LEAST_AGE = 2 * LONGEST_WRITE
"""A day for the longest write, and a day for clocks that differ."""

# Drafts of a folder's create-only put, and what earlier versions of Sealbook left while they sealed.
_DRAFT = re.compile(r"_new-[0-9a-f]{32}|_staged-[0-9a-f]{32}|_intent")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file in a run's directory that no seal names, and never will."""

    key: PartitionKey
    run_id: RunId
    path: str
    bytes: int
    modified: datetime


def find_leftovers(storage: Storage, selection: Selection, age: timedelta) -> Iterator[Leftover]:
    """Yield the leftovers that are at least so old; files that Sealbook would not write are left alone."""
    if age < LEAST_AGE:
        raise InvalidInput(
            f"a raw clean-up leaves alone what is younger than {LEAST_AGE.days} days: a write may be at work",
            field="age",
            value=age,
            remedy=f"Choose an age of at least {LEAST_AGE.days}d.",
        )
    before = utc_now() - age
    for files in list_runs(storage, selection):
        old = [name for name, entry in files.files.items() if name != METADATA and entry.modified < before]
        if old:
            yield from _unnamed(storage, files, old)


def _unnamed(storage: Storage, files: RunFiles, old: list[str]) -> Iterator[Leftover]:
    """Yield what the seal does not name; where the seal cannot be read, nothing is said to be left over."""
    payloads = set(files.payloads)
    if files.is_sealed and payloads:
        try:
            seal = read_seal(storage, files.run)
        except Corrupt:
            return
        payloads -= {seal.payload_name} if seal is not None else payloads
    for name in old:
        if name in payloads or _DRAFT.fullmatch(name):
            entry = files.files[name]
            yield Leftover(files.run.key, files.run.run_id, entry.path, entry.size, entry.modified)
