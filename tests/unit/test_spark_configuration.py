"""What Spark is started with: for a command options of Java fit for short work, unless others were chosen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from sealbook.cli.invocation import Invocation, open_book
from sealbook.config import SparkSettings, load_settings
from sealbook.spark.session import JAVA_OPTIONS, class_archive_of, spark_configuration
from tests.support.books import write_book

LEVEL, COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"


def of_a_command(master: str = "local[2]", given: str | None = None) -> SparkSettings:
    return SparkSettings(master, {} if given is None else {JAVA_OPTIONS: given}, for_command=True)


def java_options(master: str = "local[2]", given: str | None = None) -> list[str]:
    return spark_configuration(of_a_command(master, given))[JAVA_OPTIONS].split()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[4,2]"])
def test_the_java_of_a_command_is_set_up_for_short_work(master: str) -> None:
    assert {LEVEL, COLLECTOR} <= set(java_options(master))


def test_java_beside_a_cluster_is_left_alone() -> None:
    assert not {LEVEL, COLLECTOR} & set(java_options("yarn"))


def test_java_of_a_program_is_left_alone() -> None:
    """Which may scan for hours what was published."""
    options = spark_configuration(SparkSettings("local[2]"))[JAVA_OPTIONS].split()
    assert not {LEVEL, COLLECTOR} & set(options)


def test_a_command_asks_for_short_work(tmp_path: Path) -> None:
    write_book(tmp_path)
    with open_book(SimpleNamespace(obj=Invocation(config=str(tmp_path)))) as book:  # type: ignore[arg-type]
        assert book.settings.spark.for_command
    assert not load_settings(tmp_path).spark.for_command


@pytest.mark.parametrize("given", ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-Xmx1g -XX:+UseZGC"])
def test_a_collector_that_was_chosen_is_the_only_one(given: str) -> None:
    """Java refuses to start with two."""
    options = java_options(given=given)
    assert COLLECTOR not in options
    assert {LEVEL, *given.split()} <= set(options)


@pytest.mark.parametrize("given", ["-XX:TieredStopAtLevel=4", "-XX:-TieredCompilation"])
def test_a_compiler_that_was_chosen_stands(given: str) -> None:
    options = java_options(given=given)
    assert LEVEL not in options
    assert {COLLECTOR, given} <= set(options)


@pytest.mark.parametrize("given", ["-XX:+UseStringDeduplication", "-XX:+UseGCOverheadLimit", "-Dx=UseG1GC"])
def test_what_chooses_neither_changes_neither(given: str) -> None:
    assert {LEVEL, COLLECTOR, given} <= set(java_options(given=given))


@pytest.mark.parametrize(
    "name", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"]
)
def test_what_the_environment_chooses_stands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = of_a_command()
    before = class_archive_of(settings)
    monkeypatch.setenv(name, "-XX:+UseG1GC -XX:TieredStopAtLevel=4")
    assert not {LEVEL, COLLECTOR} & set(java_options())
    assert class_archive_of(settings) != before


def test_other_options_have_another_archive() -> None:
    settings = [of_a_command(), of_a_command(given="-XX:+UseG1GC"), SparkSettings("local[2]")]
    assert len({class_archive_of(each) for each in settings}) == 3
