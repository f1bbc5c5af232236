"""The example of docs/how-to/add-a-source.md, run word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from sealbook.config import SourceSettings, load_settings
from sealbook.errors import ConfigError, Permanent, Transient
from sealbook.extract.checking import check_sources
from sealbook.extract.source import Source, load_source
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.model.selection import Selection

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-source.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page, installed for one test: its module, and its entry point."""
    (project,) = blocks("toml")
    entries = tomllib.loads(project)["project"]["entry-points"]
    info = tmp_path / "csv_folder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: csv-folder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in names.items())
            for group, names in entries.items()
        )
    )
    for module in blocks("python"):
        (tmp_path / module.split("\n")[0].removeprefix("# ")).write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("csv_folder", None)


@pytest.fixture
def settings(tmp_path: Path) -> SourceSettings:
    """The settings of the page, in a book whose other settings do not matter."""
    sources, catalogue = blocks("yaml")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/csv_folder.yaml").write_text(catalogue)
    (tmp_path / "sealbook.yaml").write_text(f"ledger: sqlite:///sealbook.db\n{sources}")
    return load_settings(tmp_path / "sealbook.yaml").sources["csv_folder"]


@pytest.fixture
def query(settings: SourceSettings) -> Query:
    return settings.queries["orders"]


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    (folder / "acme/orders").mkdir(parents=True)
    (folder / "acme/orders/2026-01-01.csv").write_text("order_id;amount\nA1;10.50\nA2;3\n")
    return folder


@pytest.fixture
def source(exports: Path, settings: SourceSettings, installed: None) -> Source:  # noqa: ARG001
    return load_source(settings.type, settings.options)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("module", "right", "wrong"),
    [
        ("csv_folder.py", "Permanent(", "Transient("),
        ("csv_months.py", "yield wanted[row", "yield min(wanted.values()), row or wanted[row"),
    ],
)
def test_the_tests_of_the_page_pass_and_can_fail(module: str, right: str, wrong: str, tmp_path: Path) -> None:
    """In a process of its own, as its author runs it; then with a source that has something wrong."""
    assert run_pytest(tmp_path, f"test_{module}") == 0
    file = tmp_path / module
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong))
    assert run_pytest(tmp_path, f"test_{module}") == 1


def run_pytest(folder: Path, file: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    there = {**os.environ, "PYTHONPATH": "."}
    return subprocess.run(command, cwd=folder, capture_output=True, env=there).returncode


def key(customer_id: str, day: date) -> PartitionKey:
    return PartitionKey("csv_folder", customer_id, "orders", day)


def test_the_source_of_the_page_gives_the_rows_of_its_files(source: Source, query: Query) -> None:
    rows = list(source.fetch(key("acme", date(2026, 1, 1)), query))
    assert rows == [{"order_id": "A1", "amount": "10.50"}, {"order_id": "A2", "amount": "3"}]


def test_its_failures_are_classed_as_the_page_says(source: Source, query: Query) -> None:
    with pytest.raises(Transient, match="not arrived"):
        list(source.fetch(key("acme", date(2026, 1, 2)), query))
    with pytest.raises(Permanent, match="globex"):
        list(source.fetch(key("globex", date(2026, 1, 1)), query))


@pytest.mark.usefixtures("installed")
def test_its_options_are_checked_as_the_page_says() -> None:
    with pytest.raises(ConfigError, match="csv_folder: seperator: there is no such field") as caught:
        load_source("csv_folder", {"folder": "x", "seperator": ";"})
    assert caught.value.remedy == "Its options are folder, delimiter."


@pytest.mark.usefixtures("installed")
def test_it_checks_itself_as_the_page_says(settings: SourceSettings, tmp_path: Path) -> None:
    chosen = [Selection(source="csv_folder", queries="orders")]
    with pytest.raises(ConfigError, match=f"source csv_folder: there is no folder {tmp_path / 'exports'}"):
        check_sources({"csv_folder": settings}, chosen)
    (tmp_path / "exports").mkdir()
    check_sources({"csv_folder": settings}, chosen)
