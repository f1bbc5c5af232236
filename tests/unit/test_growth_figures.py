"""What a stage takes is counted, and held by the partition against the fewest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlalchemy import create_engine, text

from bench.compare_growth import held
from bench.harness import Result
from bench.usage import Usage, usage_of

USAGE = Usage(
    seconds=2.0,
    cpu_seconds=3.0,
    statements=100,
    files=2_000,
    driver_megabytes=200.0,
    java_megabytes=600.0,
    worker_megabytes=0.0,
)


TEN_TIMES = replace(USAGE, seconds=20.0, cpu_seconds=30.0, statements=1_000, files=20_000)


def grown(most: Usage) -> dict[str, Result]:
    """Hold what ten times as many partitions took."""
    found = held("load", "SQLite", {1_000: USAGE, 10_000: most})
    return {result.name.removeprefix("load, SQLite: "): result for result in found}


def test_what_grows_as_partitions_do_holds() -> None:
    assert {name: result.value for name, result in grown(TEN_TIMES).items()} == {
        "time a partition": 1,
        "CPU a partition": 1,
        "statements a partition": 1,
        "files a partition": 1,
        "memory of the driver": 1,
        "memory of Java": 1,
    }
    assert all(result.holds for result in grown(TEN_TIMES).values())


def test_what_grows_faster_is_missed() -> None:
    found = grown(replace(TEN_TIMES, seconds=25.0, statements=1_001, driver_megabytes=301.0))
    assert {name for name, result in found.items() if not result.holds} == {
        "time a partition",
        "statements a partition",
        "memory of the driver",
    }
    assert found["time a partition"].detail == "1,000: 2.00 ms, 10,000: 2.50 ms"


def test_what_only_the_most_partitions_need_is_missed() -> None:
    assert not grown(replace(TEN_TIMES, worker_megabytes=1.0))["memory of a worker"].holds


def test_statements_and_files_of_the_work_alone_are_counted(tmp_path: Path) -> None:
    (tmp_path / "before").touch()
    engine = create_engine("sqlite://")

    def work() -> None:
        with engine.connect() as connection:
            connection.execute(text("CREATE TABLE t (a)"))
            connection.execute(text("INSERT INTO t VALUES (:a)"), [{"a": 1}, {"a": 2}])
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "file").touch()

    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    taken = usage_of(work, tmp_path)
    engine.dispose()
    assert (taken.statements, taken.files) == (2, 1)
    assert taken.driver_megabytes > 0
