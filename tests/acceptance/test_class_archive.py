"""The archive of Spark's classes on a real Java: made by itself, used from then on, and never in the way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sealbook.config import SparkSettings
from sealbook.spark.class_archive import ClassArchive
from sealbook.spark.session import class_archive_of
from tests.acceptance.test_cli_run import write_book
from tests.support.cli import Ran, run_process

FROM_THE_ARCHIVE = "source: shared objects file (top)"


def check_contract(book: Path, cache: Path, **env: str) -> Ran:
    """Run a command that starts Spark and needs no more of it."""
    ran = run_process("contract", "check", cwd=book, env={"XDG_CACHE_HOME": str(cache), **env})
    assert ran.code == 0, ran.err
    return ran


def archive_in(cache: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    archive = class_archive_of(SparkSettings("local[2]", for_command=True))
    assert archive is not None
    return archive


def test_the_first_command_leaves_it_and_the_next_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, cache = write_book(tmp_path), tmp_path / "cache"
    archive = archive_in(cache, monkeypatch)
    said = check_contract(book, cache).err
    deadline = time.monotonic() + 240
    while not archive.file.exists():
        assert time.monotonic() < deadline, "nobody has made the archive"
        time.sleep(0.1)
    assert list(cache.glob("sealbook/*")) == [archive.file]

    logs = tmp_path / "logs"
    logs.mkdir()
    check_contract(book, cache, JDK_JAVA_OPTIONS=f"-Xlog:class+load:file={logs}/%p")
    assert any(FROM_THE_ARCHIVE in log.read_text() for log in logs.iterdir())
    assert check_contract(book, cache).err == said


def test_one_that_does_not_fit_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, cache = write_book(tmp_path), tmp_path / "cache"
    archive = archive_in(cache, monkeypatch)
    archive.file.parent.mkdir(parents=True)
    archive.file.write_bytes(b"of another Java" * 1000)
    said = check_contract(book, cache).said
    assert "rchive" not in said
    assert "WARN" not in said


def test_a_cache_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    book, cache = write_book(tmp_path), tmp_path / "cache"
    cache.touch()  # a file: not even root can write into it
    check_contract(book, cache)


def test_it_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, cache = write_book(tmp_path), tmp_path / "cache"
    settings = book / "sealbook.yaml"
    settings.write_text(settings.read_text().replace("spark:", "spark:\n  class_archive: false"))
    archive = archive_in(cache, monkeypatch)
    archive.file.parent.mkdir(parents=True)
    archive.file.touch()
    check_contract(book, cache, JDK_JAVA_OPTIONS=f"-Xlog:class+load:file={tmp_path}/%p.log")
    assert not any(FROM_THE_ARCHIVE in log.read_text() for log in tmp_path.glob("*.log"))
    assert archive.file.stat().st_size == 0


def test_a_collector_that_the_user_has_chosen_stands(tmp_path: Path) -> None:
    book, cache = write_book(tmp_path), tmp_path / "cache"
    # A file for each Java: the one that makes the archive would empty that of the command.
    check_contract(book, cache, JDK_JAVA_OPTIONS=f"-XX:+UseParallelGC -Xlog:gc:file={tmp_path}/%p.log")
    assert any("Using Parallel" in log.read_text() for log in tmp_path.glob("*.log"))
