"""Pages that are written from the code say what it says; every event, table and error is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.reference import FOLDER, errors, pages, tables
from sealbook.ledger.db.tables import metadata
from sealbook.model import EventType


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", ["errors.md", "python.md", "tables.md"])
def test_a_page_says_what_the_code_says(written: dict[str, str], name: str) -> None:
    """`make reference` writes it anew."""
    assert (FOLDER / name).read_text("utf-8") == written[name]


def test_every_table_is_documented(written: dict[str, str]) -> None:
    assert set(tables.every_table()) == set(metadata.tables)
    assert re.findall(r"^## (\w+)$", written["tables.md"], re.MULTILINE) == sorted(metadata.tables)


def test_every_error_is_documented(written: dict[str, str]) -> None:
    named = re.findall(r"^\| `(\w+)`", written["errors.md"], re.MULTILINE)
    assert named == [kind.__name__ for kind in errors.every_error()]


def test_every_event_is_documented() -> None:
    page = (FOLDER / "events.md").read_text("utf-8")
    section = page.partition("\n## Event types\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [
        kind.value for kind in EventType
    ]


def test_every_rule_of_the_semantics_is_named_by_a_test() -> None:
    page = (FOLDER.parent / "explanation" / "semantics.md").read_text("utf-8")
    tests = "\n".join(file.read_text("utf-8") for file in Path(__file__).parents[1].rglob("test_*.py"))
    rules = set(re.findall(r"R-[A-Z]+-\d+", page))
    assert rules
    assert rules - set(re.findall(r"R-[A-Z]+-\d+", tests)) == set()
