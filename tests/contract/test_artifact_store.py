"""The storage of artifacts, on a folder and on S3."""

from __future__ import annotations

import os
import pickle
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from sealbook.errors import ConfigError, NotFound
from sealbook.warehouse.layout import DRAFTS
from sealbook.warehouse.store import ArtifactStore

PATH = "demo/q/schema_version=1/part-00000.parquet"


@pytest.fixture
def store(raw_url: str) -> ArtifactStore:
    """An empty warehouse on each kind of storage."""
    return ArtifactStore.open(raw_url)


def test_what_was_put_is_there_whole(store: ArtifactStore) -> None:
    store.put_all({PATH: b"rows", f"{PATH}-2": b""})
    store.sync()

    opened = pickle.loads(pickle.dumps(store))
    assert opened.get(PATH) == b"rows"
    assert opened.sha256(PATH) == sha256(b"rows").hexdigest()
    assert opened.sizes("demo") == {PATH: 4, f"{PATH}-2": 0}
    assert opened.directories("demo") == ["demo/q"]


@pytest.mark.parametrize("url", ["ftp://host/folder", "s3://", "/dev/null/folder"])
def test_a_place_that_cannot_be_is_said_to_be_the_warehouse(url: str) -> None:
    with pytest.raises(ConfigError, match=f"^warehouse {url}"):
        ArtifactStore.open(url)


def test_what_is_damaged_is_replaced(store: ArtifactStore) -> None:
    store.put(PATH, b"damaged")
    store.put(PATH, b"rows")

    assert store.get(PATH) == b"rows"
    assert store.sizes(DRAFTS) == {}


def test_the_same_bytes_are_not_written_again(folder_url: str) -> None:
    store = ArtifactStore.open(folder_url)
    store.put(PATH, b"rows")
    file = Path(folder_url) / PATH
    os.utime(file, (1, 1))

    store.put(PATH, b"rows")

    assert file.stat().st_mtime == 1


def test_deleting_leaves_no_empty_directories_and_forgives_what_is_gone(folder_url: str) -> None:
    store = ArtifactStore.open(folder_url)
    store.put(PATH, b"rows")

    store.delete([PATH])
    store.delete([PATH])

    assert store.get(PATH) is None
    assert [path.name for path in Path(folder_url).iterdir()] == [DRAFTS]
    with pytest.raises(NotFound):
        store.sha256(PATH)


def test_a_clean_up_that_takes_the_directory_of_drafts_holds_up_no_writer(folder_url: str) -> None:
    store = ArtifactStore.open(folder_url)
    (Path(folder_url) / DRAFTS).mkdir()
    store.delete([f"{DRAFTS}/01J8ZQ6T5N8W3Y2V7R4K9M0XCE"])
    assert not (Path(folder_url) / DRAFTS).exists()

    store.put(PATH, b"rows")

    assert store.get(PATH) == b"rows"


def test_what_was_put_is_on_disk_after_a_sync_with_all_that_leads_to_it(
    folder_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what another store had put before: nobody knows whether that one was told to sync."""
    synced = []
    fsync = os.fsync

    def seen_fsync(fd: int) -> None:
        fsync(fd)
        synced.append(os.fstat(fd).st_ino)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    paths = [f"demo/q/schema_version={number % 7}/part-{number:05d}.parquet" for number in range(50)]
    ArtifactStore.open(folder_url).put(paths[0], b"rows")
    store = ArtifactStore.open(folder_url)
    store.put_all(dict.fromkeys(paths, b"rows"))
    assert synced == []

    store.sync()

    files = [Path(folder_url) / path for path in paths]
    expected = {*files, *(parent for file in files for parent in file.parents[:4])}
    assert {path.stat().st_ino for path in expected} == set(synced)
    last_file = max(synced.index(file.stat().st_ino) for file in files)
    assert last_file < min(synced.index(path.stat().st_ino) for path in expected - set(files))


def test_a_draft_is_abandoned_once_it_is_old(folder_url: str) -> None:
    store = ArtifactStore.open(folder_url)
    old = f"{DRAFTS}/01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
    (Path(folder_url) / DRAFTS).mkdir()
    for path in (old, f"{DRAFTS}/somebody-elses"):
        (Path(folder_url) / path).write_bytes(b"half")

    assert store.abandoned_drafts(datetime.now(UTC) - timedelta(hours=1)) == [old]
    assert store.abandoned_drafts(datetime(2000, 1, 1, tzinfo=UTC)) == []
