"""What cannot be computed is null, for its row alone: no number that wrapped around, no failed job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sealbook.spark.null_on_error import NULL_ON_ERROR, null_on_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

NULL, TRUE = None, True
CASES: dict[str, bool | None] = {
    # what would wrap around
    "i + i <= 1000": NULL,
    "m - i > 0": NULL,
    "i * i < 5": NULL,
    "l + 1 < 0": NULL,
    "-m < 0": NULL,
    "abs(m) < 0": NULL,
    "n div -1 < 0": NULL,
    "round(i, -1) < 0": NULL,
    "cast(l as int) = -1": NULL,
    "int(d) > 0": NULL,
    "cast(d as bigint) > 0": NULL,
    "tinyint(o * 100) > 0": NULL,
    "ceil(d) > 0": NULL,
    "floor(d) > 0": NULL,
    "o + 2147483647 - 2147483647 = 5": NULL,
    "exists(array(i, o), each -> each + 1 < 0)": NULL,
    "aggregate(array(i, i), 0, (sum, each) -> sum + each) < 0": NULL,
    "l between i * 2 and l": NULL,
    "case when i > 0 then i + i else 0 end > -5": NULL,
    # what would end the job, twice: no part that two rules share is computed outside of them
    "timestamp_seconds(l) > timestamp'2020-01-01'": NULL,
    "timestamp_seconds(l) < timestamp'2020-01-01'": NULL,
    "if(o = 5, raise_error('no'), true)": NULL,
    # what was null before
    "i / 0 > 1": NULL,
    "o % 0 = 1": NULL,
    "s > 5": NULL,
    # a null inside can be caught
    "coalesce(i + i, 0) = 0": TRUE,
    "coalesce(cast(l as int), -1) = -1": TRUE,
    "coalesce(i / 0, 1) = 1": TRUE,
    "(i + i) is null": TRUE,
    # all else is as it was
    "o + o = 10 and o - 1 = 4 and o * 2 = 10 and o div 2 = 2 and o % 2 = 1 and pmod(o, 3) = 2": TRUE,
    "-o = -5 and abs(-o) = 5 and round(o, -1) = 10 and ceil(o / 2) = 3 and cast(2.9 as int) = o - 3": TRUE,
    "cast('1.5' as int) = o - 4 and '7' > o": TRUE,
    "i + cast(1 as bigint) = 2147483648 and o + 1.5 = 6.5 and o + 0.5D = 5.5D": TRUE,
    "date'2020-01-01' + interval 1 day = date'2020-01-02'": TRUE,
    "date_add(date'2020-01-01', o) = date'2020-01-06'": TRUE,
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Iterator[dict[str, object]]:
    """What comes of every expression, computed at once, in a row that has an extreme of each type."""
    before = {name: spark.conf.get(name, None) for name in NULL_ON_ERROR}
    for name, value in NULL_ON_ERROR.items():
        spark.conf.set(name, value)
    row = (2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 1e30, 5, "x")
    rows = spark.createDataFrame([row], "i int, m int, l bigint, n bigint, d double, o int, s string")
    answers = rows.repartition(1).select(*null_on_error(rows, list(CASES))).first()
    assert answers is not None
    yield dict(zip(CASES, answers, strict=True))
    for name, earlier in before.items():
        if earlier is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, earlier)


@pytest.mark.parametrize("expression", CASES)
def test_what_cannot_be_computed_is_null(found: dict[str, object], expression: str) -> None:
    """R-VER-1: a rule holds where it is true, and nowhere else."""
    assert found[expression] is CASES[expression]
