"""The part files of artifacts, read from a folder and from S3."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sealbook.errors import NotFound
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

PATH = "demo/q/part-00000.parquet"
SMALL, LARGE = 100, 2 * 1024 * 1024


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_file_is_read_in_a_worker_too(raw_url: str, size: int) -> None:
    data = bytes(range(250)) * (size // 250 + 1)
    ArtifactStore.open(raw_url).put(PATH, data)
    files = pickle.loads(pickle.dumps(PartFiles(raw_url)))

    file = files.open(PATH, size)

    assert file.size() == len(data)
    file.seek(7)
    assert file.read(5) == data[7:12]
    assert file.read() == data[12:]


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_file_that_is_gone_is_named(raw_url: str, size: int) -> None:
    with pytest.raises(NotFound, match=f"the artifact {PATH} is gone"):
        PartFiles(raw_url).open(PATH, size).read()


def test_a_folder_is_one_however_it_is_named(tmp_path: Path) -> None:
    for url in (str(tmp_path), tmp_path.as_uri(), f"{tmp_path}/../{tmp_path.name}"):
        assert PartFiles(url).folder == tmp_path
        assert ArtifactStore.open(url).folder == tmp_path


def test_a_bucket_is_no_folder(s3_url: str) -> None:
    assert PartFiles(s3_url).folder is None
    assert ArtifactStore.open(s3_url).folder is None
