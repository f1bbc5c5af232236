"""The same files, aggregates and duplicates in DuckDB, and the usual Spark way."""

from __future__ import annotations

from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from bench.validate_load import CORES
from tests.support.validation import COLUMNS, CONTRACT

_PAYLOADS = "*/*/*/*/*/payload*.jsonl"
_REQUIRED = " or ".join(f"{column.name} is null" for column in COLUMNS if column.required)
_KEY = ", ".join(CONTRACT.primary_key)
_DAY = r"logical_date=([^/]+)"


class DuckDb:
    """DuckDB on as many threads as Spark has cores."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": CORES})

    def judge(self, root: Path) -> int:
        """Count rows, nulls, other days, violations and repeated keys of each file; return how many files."""
        columns = ", ".join(f"{column.name}: '{column.type}'" for column in COLUMNS)
        counts = {
            "missing": _REQUIRED,
            "other_day": f"{CONTRACT.date_column} is distinct from logical_date",
            **{rule.name: f"({rule.expression}) is not true" for rule in CONTRACT.rules},
        }
        inner = ", ".join(f"count(*) filter ({condition}) as {name}" for name, condition in counts.items())
        outer = ", ".join(f"sum({name}) as {name}" for name in counts)
        found = self._connection.sql(
            f"select filename, sum(rows) as rows, {outer}, sum(rows) - count(*) as repeated"
            f" from (select filename, {_KEY}, count(*) as rows, {inner}"
            f" from read_json('{root}/{_PAYLOADS}', format='newline_delimited', filename=true,"
            f" hive_partitioning=true, hive_types={{logical_date: date}}, columns={{{columns}}})"
            f" group by filename, {_KEY}) group by filename"
        ).fetchall()
        return len(found)


def judge_natively(spark: SparkSession, root: Path) -> int:
    """Do the same with Spark's own JSON reader and groupBy; return how many files."""
    schema = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    paths = sorted(map(str, root.glob(_PAYLOADS)))
    rows = spark.read.schema(schema).json(paths).withColumn("path", F.col("_metadata.file_path"))
    day = F.to_date(F.regexp_extract("path", _DAY, 1))
    counts = {
        "missing": F.expr(_REQUIRED),
        "other_day": ~F.coalesce(F.col(str(CONTRACT.date_column)) == day, F.lit(False)),
        **{rule.name: ~F.coalesce(F.expr(rule.expression), F.lit(False)) for rule in CONTRACT.rules},
    }
    keyed = rows.groupBy("path", *CONTRACT.primary_key).agg(
        F.count("*").alias("rows"), *(F.count_if(each).alias(name) for name, each in counts.items())
    )
    repeated = (F.sum("rows") - F.count("*")).alias("repeated")
    found = keyed.groupBy("path").agg(F.sum("rows"), *(F.sum(name) for name in counts), repeated).collect()
    return len(found)
