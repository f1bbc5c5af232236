"""R-WH-2: artifacts that are deleted come back byte for byte, however the load that writes them is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import open_ledger
from tests.support.extraction import demo_keys
from tests.support.loading import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=4, days=5)

PROGRAM = """
import sys
from pathlib import Path
from sealbook.config import SparkSettings
from sealbook.ledger import open_ledger
from sealbook.spark.session import spark_session
from sealbook.load import loading
from tests.support.loading import Warehouse

loading._BATCH = 3
spark = spark_session(SparkSettings(master="local[4]"))
for folder, rebuild, ending in ((sys.argv[1], True, "rebuilt"), (sys.argv[2], False, "loaded")):
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        results = Warehouse(Path(folder), ledger).load(spark, rebuild=rebuild)
    assert {result.ending for result in results.values()} == {ending}, results
"""


def test_the_same_bytes_and_records_with_other_cores_and_batches(tmp_path: Path, spark: SparkSession) -> None:
    """Idempotency: "byte-equivalent warehouse results and identical load records"."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    with open_ledger(f"sqlite:///{here}/book.db") as ledger:
        warehouse = Warehouse(here, ledger)
        warehouse.accept(KEYS, warehouse.seal(KEYS))
        shutil.copytree(here, elsewhere)
        warehouse.load(spark)
        files, records = warehouse.files(), list(ledger.pointers.load_records())
        pointers = list(ledger.pointers.pointers())
        assert len(files) == len(records) == len(KEYS)
        shutil.rmtree(warehouse.url)

        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(here), str(elsewhere)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": "."},
            check=True,
            timeout=240,
        )

        assert warehouse.files() == files
        assert list(ledger.pointers.load_records()) == records
        assert list(ledger.pointers.pointers()) == pointers
        warehouse.check_intact()
    with open_ledger(f"sqlite:///{elsewhere}/book.db") as ledger:
        assert Warehouse(elsewhere, ledger).files() == files
        at = records[0].loaded_at
        alike = [each._replace(loaded_at=at) for each in ledger.pointers.load_records()]
        assert alike == [each._replace(loaded_at=at) for each in records]
