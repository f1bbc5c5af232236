"""`sealbook doctor --spark`: that Spark starts, and takes every rule, is seen by starting it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.cli import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

RULE = "queries.campaign_daily.contracts.1.rules[0].expression"


@pytest.mark.parametrize(
    ("expression", "level"), [("metrics_clicks >= 0", "ok"), ("metrics_clickz >= 0", "fail")]
)
def test_rules_are_analysed(tmp_path: Path, spark: SparkSession, expression: str, level: str) -> None:
    del spark  # the session that the command finds
    write_book(
        tmp_path, changed(SETTINGS, "sources.google_ads.options", {}), changed(CATALOGUE, RULE, expression)
    )
    without = run("doctor", "--quick", "--format", "json", cwd=tmp_path)
    assert not {"spark", "contracts"} & {each["part"] for each in without.json}
    found = {each["part"]: each for each in run("doctor", "--spark", "--format", "json", cwd=tmp_path).json}
    assert found["spark"]["level"] == "ok"
    assert "starts and counts in" in found["spark"]["text"]
    assert found["contracts"]["level"] == level
    assert (RULE.rpartition(".")[2] in found["contracts"]["text"]) == (level == "fail")
