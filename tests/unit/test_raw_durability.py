"""A folder write survives a loss of power: what reaches the disk, and in which order."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from sealbook.model import PartitionKey
from sealbook.raw import RawStore
from sealbook.raw.layout import RunPaths
from tests.support.s3 import KEY, RUN, numbered, seal_rows

PATHS = RunPaths(KEY, RUN)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """Take down, in order, what is brought to disk (by inode) and what gets its name."""
    seen: list[tuple[str, object]] = []
    fsync, hardlink_to = os.fsync, Path.hardlink_to

    def seen_fsync(fd: int) -> None:
        fsync(fd)
        seen.append(("fsync", os.fstat(fd).st_ino))

    def seen_link(self: Path, target: Path) -> None:
        hardlink_to(self, target)
        seen.append(("named", self.name))

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(Path, "hardlink_to", seen_link)
    return seen


def on_disk(path: Path) -> tuple[str, object]:
    return "fsync", path.stat().st_ino


def test_everything_is_on_disk_before_the_name_that_vouches_for_it(
    tmp_path: Path, events: list[tuple[str, object]]
) -> None:
    """R-RAW-2: fsync of payload, seal and directories, before and at the seal."""
    seal = seal_rows(RawStore.open(tmp_path), numbered(3))
    directory = tmp_path / PATHS.directory
    sealed = events.index(("named", "metadata.json"))
    for path in (tmp_path / PATHS.payload(seal.payload_name), tmp_path / PATHS.metadata, directory):
        assert on_disk(path) in events[:sealed]
    for path in (directory, *directory.parents[:5]):
        assert on_disk(path) in events[sealed:]
    assert directory.parents[4] == tmp_path


def test_every_new_directory_is_on_disk_with_its_seal(
    tmp_path: Path, events: list[tuple[str, object]]
) -> None:
    """Also for later partitions, whose upper directories are there already."""
    store = RawStore.open(tmp_path)
    seal_rows(store, numbered(1))
    events.clear()
    next_day = PartitionKey(KEY.source, KEY.customer_id, KEY.query_name, KEY.logical_date + timedelta(days=1))
    seal_rows(store, numbered(1), next_day)
    run = tmp_path / RunPaths(next_day, RUN).directory
    sealed = events.index(("named", "metadata.json"))
    for path in (run, run.parent, run.parent.parent):
        assert on_disk(path) in events[sealed:]
