"""`sealbook load` and `sealbook warehouse`, as a user types them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger import open_ledger
from tests.support.cli import Ran, run
from tests.support.extraction import demo_keys
from tests.support.loading import Warehouse

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

KEYS = demo_keys(customers=2, days=2)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A book with one accepted run of four partitions, none of them published."""
    demo = {"queries": "demo.yaml", "customers": ["c0", "c1"]}
    settings = {
        "ledger": "sqlite:///book.db",
        "raw": "raw",
        "warehouse": "warehouse",
        "sources": {"demo": demo},
        "spark": {"master": "local[2]"},
    }
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        made = Warehouse(tmp_path, ledger)
        made.accept(KEYS, made.seal(KEYS))
        yield made


def sealbook(warehouse: Warehouse, *arguments: str) -> Ran:
    return run(*arguments, "--format", "json", cwd=warehouse.folder)


def test_a_dry_run_changes_nothing_and_a_load_publishes(warehouse: Warehouse) -> None:
    """R-WH-1."""
    planned = sealbook(warehouse, "load", "--dry-run")
    assert [row["action"] for row in planned.json] == ["load"] * 4
    assert planned.json == sealbook(warehouse, "warehouse", "plan").json
    first = sealbook(warehouse, "warehouse", "plan", "--limit", "1")
    assert first.json == planned.json[:1]
    assert "Plan: 4 to load, 0 to replace, 0 to hide" in first.said
    assert warehouse.published() == []

    ran = sealbook(warehouse, "load")

    assert ran.code == 0
    assert {row["ending"] for row in ran.json} == {"loaded"}
    assert {row["status"] for row in sealbook(warehouse, "warehouse", "pointers").json} == {"available"}
    assert len(sealbook(warehouse, "warehouse", "records").json) == 4
    assert sealbook(warehouse, "load").json == []


def test_verify_names_each_difference_and_rebuilding_mends_it(warehouse: Warehouse) -> None:
    sealbook(warehouse, "load")
    assert sealbook(warehouse, "warehouse", "verify").code == 0
    missing, damaged, *_ = warehouse.published()
    warehouse.parts(missing)[0].unlink()
    file = warehouse.parts(damaged)[0]
    file.write_bytes(file.read_bytes()[:-8] + bytes(8))
    demoted = warehouse.published()[3]
    warehouse.demote(demoted.key, demoted.run_id)

    verified = sealbook(warehouse, "warehouse", "verify")

    assert verified.code == 1
    found = {(row["customer_id"], row["logical_date"], row["field"]) for row in verified.json}
    assert found == {
        (missing.customer_id, str(missing.logical_date), "parts"),
        (damaged.customer_id, str(damaged.logical_date), "digest"),
        (damaged.customer_id, str(damaged.logical_date), "record_count"),
        (demoted.customer_id, str(demoted.logical_date), "pointer status"),
    }
    ways_out = {row["field"]: row["remedy"] for row in verified.json}
    assert ways_out["parts"] == ways_out["digest"] == "sealbook load --rebuild"
    assert ways_out["pointer status"] == "sealbook load"
    assert sealbook(warehouse, "load", "--rebuild").code == 0
    assert sealbook(warehouse, "warehouse", "verify").json == []


def test_verify_finds_a_success_that_no_note_tells_of_and_a_full_load_publishes_it(
    warehouse: Warehouse,
) -> None:
    """R-WH-8."""
    sealbook(warehouse, "load", str(KEYS[0]))
    with warehouse.ledger._database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM authority_change")
    assert sealbook(warehouse, "load").json == []

    verified = sealbook(warehouse, "warehouse", "verify")

    assert verified.code == 1
    assert [(row["field"], row["found"]) for row in verified.json] == [("pointer run_id", "no pointer")] * 3
    assert "`sealbook load --full` resolves 3" in verified.said
    planned = sealbook(warehouse, "warehouse", "plan", "--full")
    assert [row["action"] for row in planned.json] == ["load"] * 3
    assert planned.json == sealbook(warehouse, "load", "--full", "--dry-run").json
    assert [row["ending"] for row in sealbook(warehouse, "load", "--full").json] == ["loaded"] * 3
    assert sealbook(warehouse, "warehouse", "verify").json == []
    assert len(warehouse.published()) == 4


def test_gc_removes_what_neither_pointer_nor_cut_nor_retention_needs(warehouse: Warehouse) -> None:
    """R-WH-7: and orphans of crashed loads."""
    sealbook(warehouse, "load")
    first = warehouse.files()
    [cut] = sealbook(warehouse, "warehouse", "cut", "create", "one", "--note", "n").json
    assert cut["token"] == "one"
    warehouse.accept(KEYS[:1], warehouse.seal(KEYS[:1], restatement=3))
    sealbook(warehouse, "load")
    orphan = next(iter(first)).replace("2026-01-01", "2025-01-01")
    (Path(warehouse.url) / orphan).parent.mkdir(parents=True)
    (Path(warehouse.url) / orphan).write_bytes(b"left behind")

    def gc(*arguments: str) -> list[bool]:
        return [row["orphan"] for row in sealbook(warehouse, "warehouse", "gc", *arguments).json]

    assert gc("--retain", "0m", "--dry-run") == [True]
    assert gc("--retain", "0m") == [True]
    assert not (Path(warehouse.url) / orphan).exists()
    assert first.items() <= warehouse.files().items()  # the cut pins them
    assert sealbook(warehouse, "warehouse", "cut", "list").json == [cut]
    assert run("warehouse", "cut", "drop", "one", cwd=warehouse.folder).code == 0
    assert gc("--retain", "7d") == []
    assert gc("--retain", "0m") == [False]
    assert len(warehouse.files()) == 4
    warehouse.check_intact()


@pytest.mark.parametrize(
    "arguments",
    [
        ("warehouse", "gc", "--retain", "soon"),
        ("warehouse", "pointers", "demo/c0/campaign_daily/2026-01-01", "--source", "demo"),
        ("load", "--since", "2026-02-30"),
        ("load", "--source", "demos"),
        ("load", "--query", "campaign_dayly", "--dry-run"),
        ("load", "--customer", "c2"),
        ("warehouse", "cut", "create", "v1"),
    ],
)
def test_wrong_usage(warehouse: Warehouse, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments, cwd=warehouse.folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
