"""The archive of Spark's classes: what it is named by, who makes it, and what is removed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sealbook.spark import rehearsal
from sealbook.spark.cache import cache_folder
from sealbook.spark.class_archive import ClassArchive


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Java, a Spark and a cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for file in ("java/bin/java", "java/release", "spark/jars/a.jar", "spark/jars/b.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    return tmp_path


def archive_of(machine: Path, *options: str) -> ClassArchive:
    return ClassArchive.of(machine / "java/bin/java", machine / "spark", options)


def test_the_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == Path.home() / ".cache" / "sealbook"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/sealbook")


@pytest.mark.parametrize(
    "change",
    [
        lambda machine: (machine / "java/release").write_text("another build"),
        lambda machine: (machine / "java/bin/java").write_text("another program"),
        lambda machine: (machine / "spark/jars/a.jar").write_text("another version"),
        lambda machine: (machine / "spark/jars/c.jar").touch(),
        lambda machine: (machine / "spark/jars/b.jar").unlink(),
        lambda machine: (machine / "spark").rename(machine / "moved"),
    ],
    ids=["java-release", "java", "jar", "new-jar", "no-jar", "moved"],
)
def test_another_java_or_spark_has_another_archive(machine: Path, change: Callable[[Path], object]) -> None:
    before = archive_of(machine)
    assert archive_of(machine) == before
    change(machine)
    spark = next(each for each in (machine / "spark", machine / "moved") if each.exists())
    assert ClassArchive.of(machine / "java/bin/java", spark, ()) != before


def test_other_options_have_another_archive(machine: Path) -> None:
    assert (
        len({archive_of(machine), archive_of(machine, "-Xfoo"), archive_of(machine, "-Xfoo", "/c.jar")}) == 3
    )


def test_an_archive_is_used_once_it_is_there(machine: Path) -> None:
    archive = archive_of(machine)
    assert archive.java_options() == []
    archive.file.parent.mkdir(parents=True)
    archive.file.touch()
    os.utime(archive.file, (0, 0))
    assert f"-XX:SharedArchiveFile={archive.file}" in archive.java_options()
    assert archive.file.stat().st_mtime > 0  # used just now


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for Java, which needs seconds: it writes where its option says, and the options are kept."""
    options: list[str] = []

    def rehearse(_configuration: object, java_options: list[str]) -> None:
        options.extend(java_options)
        Path(java_options[0].partition("=")[2]).write_bytes(b"classes")

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    return options


def test_it_is_written_under_a_name_of_its_own(machine: Path, rehearsed: list[str]) -> None:
    archive = archive_of(machine)
    archive.make({})
    draft = Path(rehearsed[0].partition("=")[2])
    assert draft != archive.file
    assert list(archive.file.parent.iterdir()) == [archive.file]
    assert archive.file.read_bytes() == b"classes"


def test_of_several_at_once_one_makes_it(machine: Path, rehearsed: list[str]) -> None:
    archive = archive_of(machine)
    archive.file.parent.mkdir(parents=True)
    other = archive.file.with_suffix(".1.draft")
    other.touch()
    archive.make({})
    assert rehearsed == []
    os.utime(other, (0, 0))  # it was killed, long ago
    archive.make({})
    assert list(archive.file.parent.iterdir()) == [archive.file]


def test_one_that_could_not_be_written_is_no_archive(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", lambda *_: None)
    archive = archive_of(machine)
    archive.make({})
    assert list(archive.file.parent.iterdir()) == []


def test_those_used_last_are_kept(machine: Path, rehearsed: list[str]) -> None:
    folder = cache_folder()
    folder.mkdir(parents=True)
    now = time.time()
    for age in range(1, 8):
        old = folder / f"spark-classes-{age}.jsa"
        old.touch()
        os.utime(old, (now - age, now - age))
    (folder / "of-something-else").touch()
    archive = archive_of(machine)
    archive.make({})
    assert rehearsed
    kept = {archive.file.name, *(f"spark-classes-{age}.jsa" for age in range(1, 5)), "of-something-else"}
    assert {file.name for file in folder.iterdir()} == kept
