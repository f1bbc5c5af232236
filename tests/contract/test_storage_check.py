"""Storage that cannot be used says so at once, and is never taken for a failure that passes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from sealbook.errors import NotFound, Permanent, Transient, Unwritable
from sealbook.extract.ranges import singles
from sealbook.extract.results import Ending
from sealbook.model.failures import ErrorClass
from sealbook.raw import RawReader, RawStore
from sealbook.storage import Storage, opening
from sealbook.storage.objects import PROBES
from sealbook.warehouse.store import ArtifactStore
from tests.support.extraction import demo_extractor, demo_keys
from tests.support.s3 import KEY, RUN, Fault, S3Server, numbered, seal_rows

Check = Callable[[str], None]


def check_raw(url: str) -> None:
    RawStore.open(url).check()


def check_raw_to_read(url: str) -> None:
    RawReader.open(url).check()


def check_warehouse(url: str) -> None:
    ArtifactStore.open(url).check(writing=True)


every_check = pytest.mark.parametrize("check", [check_raw, check_raw_to_read, check_warehouse])


@every_check
def test_storage_that_can_be_used_passes_and_nothing_is_written(raw_url: str, check: Check) -> None:
    check(raw_url)
    assert RawStore.open(raw_url)._storage.directories() == []


def test_a_probe_is_taken_away_again(raw_url: str) -> None:
    """What is written only to see that it can be leaves no trace."""
    storage = RawStore.open(raw_url)._storage
    storage.probe()
    assert storage.names(PROBES) == []
    assert storage.directories() == []


class Overwriting(Storage):
    """A storage that takes no notice of what is there: as some that call themselves S3."""

    def create(self, path: str, data: bytes) -> bool:
        obstore.put(self._store, path, data)
        return True


class Late(Storage):
    """A storage whose listings do not show at once what was written."""

    def names(self, directory: str) -> list[str]:
        return [path for path in super().names(directory) if path.endswith("/")]


@pytest.mark.parametrize(
    ("kind", "said"), [(Overwriting, "create-only puts"), (Late, "was written, and is not listed")]
)
def test_a_probe_finds_a_storage_that_cannot_be_relied_on(kind: type[Storage], said: str) -> None:
    """R-RAW-2: of two racing writers both would seal; or a sealed run would not be found."""
    store = MemoryStore()
    with pytest.raises(Permanent, match=said) as error:
        kind(store, "memory").probe()
    assert error.value.remedy
    assert Storage(store).names(PROBES) == []


@every_check
def test_a_missing_bucket_is_permanent_and_named(s3_url: str, s3_server: S3Server, check: Check) -> None:
    url = s3_url.replace("bucket", "no-such-bucket")
    s3_server.expect(None)
    with pytest.raises(NotFound, match=f"{url} cannot be found: NoSuchBucket: ") as error:
        check(url)
    assert s3_server.requests == 1
    assert "<" not in str(error.value)
    assert "bucket" in (error.value.remedy or "")


@every_check
def test_a_refused_credential_is_permanent(s3_url: str, s3_server: S3Server, check: Check) -> None:
    s3_server.expect(Fault(1, applied=False, times=9, status="403 Forbidden"))
    with pytest.raises(Permanent, match=f"refused access to {s3_url}"):
        check(s3_url)


@every_check
def test_a_storage_that_does_not_answer_is_transient(
    s3_url: str, monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    monkeypatch.setattr(opening, "_RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Transient, match=s3_url):
        check(s3_url)


def test_a_missing_bucket_is_not_an_empty_one(s3_url: str) -> None:
    """Whatever is asked of it: nothing is said to be absent because the bucket is."""
    store = RawStore.open(s3_url.replace("bucket", "no-such-bucket"))
    for call in (
        lambda: seal_rows(store, numbered(1)),
        lambda: store.metadata(KEY, RUN),
        lambda: store.runs(KEY),
        lambda: list(store.sealed()),
    ):
        with pytest.raises(NotFound, match="NoSuchBucket"):
            call()


def test_a_folder_that_is_gone_is_permanent(tmp_path: Path) -> None:
    store = RawStore.open(tmp_path / "raw")
    shutil.rmtree(tmp_path / "raw")
    with pytest.raises(NotFound, match=str(tmp_path / "raw")):
        store.check()


def test_a_full_disk_is_told_with_errno_and_path_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room does not come back within the minutes that a retry takes."""
    opened: list[str] = []
    os_open = os.open

    def open_full(path: str | Path, flags: int, *rest: Any, **named: Any) -> int:
        if "payload-" not in str(path):
            return os_open(path, flags, *rest, **named)
        opened.append(str(path))
        return os_open("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", open_full)
    store = RawStore.open(tmp_path / "raw")
    with pytest.raises(
        Unwritable, match=r"payload-\w+\.jsonl cannot be written: \[Errno 28\] No space"
    ) as error:
        store.write(KEY, RUN, numbered(1))
    assert str(tmp_path / "raw") in str(error.value)
    assert error.value.remedy is not None

    opened.clear()
    [result] = demo_extractor(tmp_path)(singles(demo_keys(1, 1)))
    assert result.ending is Ending.FAILED
    assert result.error_class is ErrorClass.PERMANENT
    assert "Errno 28" in (result.error_message or "")
    assert len(opened) == 1


def test_a_missing_bucket_fails_a_partition_once(s3_url: str, s3_server: S3Server, tmp_path: Path) -> None:
    missing = s3_url.replace("bucket", "no-such-bucket")
    extractor = replace(demo_extractor(tmp_path), raw_url=missing, resumes=False)
    s3_server.expect(None)
    [result] = extractor(singles(demo_keys(1, 1)))
    assert result.error_class is ErrorClass.PERMANENT
    assert "NoSuchBucket" in (result.error_message or "")
    assert s3_server.requests <= 3  # the put, and the removal of what it may have left
