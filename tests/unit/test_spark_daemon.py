"""Where Spark's Python workers take their modules from."""

from __future__ import annotations

from pathlib import Path

from sealbook.spark.daemon import without_archives

ARCHIVES = ["/opt/spark/python/lib/pyspark.zip", "/opt/spark/python/lib/py4j-0.10.9.9-src.zip"]
JAR = "/opt/spark/jars/spark-core_2.13-4.3.0.jar"


def _installed(folder: Path) -> str:
    (folder / "pyspark").mkdir()
    (folder / "pyspark" / "__init__.py").touch()
    return str(folder)


def test_archives_of_spark_are_left_out_where_pyspark_is_installed(tmp_path: Path) -> None:
    installed = _installed(tmp_path)
    assert without_archives([*ARCHIVES, JAR, installed]) == [installed]


def test_archives_of_the_user_stay(tmp_path: Path) -> None:
    path = ["/home/me/functions.zip", "/home/me/driver.jar", _installed(tmp_path)]
    assert without_archives(path) == path


def test_the_path_stays_where_pyspark_is_only_in_the_archive(tmp_path: Path) -> None:
    path = [*ARCHIVES, JAR, str(tmp_path)]
    assert without_archives(path) == path
