"""R-CTL-4: what a live claim holds, commands by hand leave out, and say so with the way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import sealbook
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.work import rows as work_rows
from sealbook.model import PartitionKey
from tests.acceptance.test_cli_run import write_book
from tests.support.cli import run
from tests.support.schedule import open_work, work_of

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DAY = ("--day", "2026-01-02", "--query", "campaign_daily")
KEYS = [PartitionKey.parse(f"demo/{customer}/campaign_daily/2026-01-02") for customer in ("c0", "c1", "c2")]


def claim(folder: Path, *keys: PartitionKey) -> Callable[[], None]:
    """Have a loop work on partitions; return how it lets go of them."""
    with sealbook.open(folder) as book:
        open_work(book.ledger, map(work_of, keys))
        claims = book.ledger.scheduler.claim("loop-1", Terms(["demo"]), limit=9)
        assert {each.key for each in claims} == set(keys)

    def let_go() -> None:
        with sealbook.open(folder) as book:
            book.ledger._database.write(lambda connection: work_rows.remove(connection, keys))

    return let_go


@pytest.mark.parametrize("command", ["run", "extract"])
def test_what_is_held_is_not_fetched(tmp_path: Path, command: str) -> None:
    folder = write_book(tmp_path)
    let_go = claim(folder, KEYS[1])
    ran = run(command, *DAY, "--format", "json", cwd=folder)
    assert ran.code == 0, ran.err
    assert f"Left out: 1 partition being worked on by loop-1 ({KEYS[1]})" in ran.err
    assert "sealbook control leases" in ran.err
    with sealbook.open(folder) as book:
        assert {each.key for each in book.raw.sealed()} == {KEYS[0], KEYS[2]}
    let_go()
    again = run(command, *DAY, cwd=folder)
    assert (again.code, "Left out" in again.err) == (0, False)


def test_where_all_is_held_nothing_is_started(tmp_path: Path) -> None:
    folder = write_book(tmp_path)
    claim(folder, *KEYS)
    ran = run("run", *DAY, cwd=folder)
    assert ran.code == 1
    assert "others are working on all that is chosen: 3 partitions, by loop-1" in ran.err
    assert "sealbook state pause" in ran.err
    assert run("runs", "--format", "json", cwd=folder).json == []


def test_what_is_held_is_neither_judged_nor_loaded(tmp_path: Path) -> None:
    folder = write_book(tmp_path)
    assert run("extract", *DAY, cwd=folder).code == 0
    let_go = claim(folder, KEYS[0])
    judged = run("validate", "--format", "json", cwd=folder)
    assert judged.code == 0, judged.err
    assert {each["customer_id"] for each in judged.json} == {"c1", "c2"}
    assert "Left out: 1 partition being worked on by loop-1" in judged.err
    rehearsed = run("validate", "--dry-run", "--format", "json", cwd=folder)
    assert [each["customer_id"] for each in rehearsed.json] == ["c0"], "to look is in nobody's way"
    let_go()

    let_go = claim(folder, KEYS[1])
    loaded = run("load", "--format", "json", cwd=folder)
    assert {each["customer_id"] for each in loaded.json} == {"c2"}
    assert "Left out: 1 partition being worked on by loop-1" in loaded.err
    let_go()
    assert run("validate", cwd=folder).code == 0
    assert run("load", cwd=folder).code == 0
    assert "Left out" not in run("load", cwd=folder).err
