"""`sealbook init`: the files of a new book."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealbook.config import load_settings
from tests.support.cli import run, run_process

FILES = ["config/google_apis.yaml", "sealbook.yaml"]


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_files_it_writes_are_a_book(tmp_path: Path) -> None:
    done = run_process("init", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert files_in(tmp_path) == FILES
    assert run("state", "inspect", "--format", "json", cwd=tmp_path).json == []


def test_it_makes_the_folder_that_it_is_told(tmp_path: Path) -> None:
    assert run("init", "a/b", cwd=tmp_path).code == 0
    assert files_in(tmp_path / "a" / "b") == FILES


def test_every_line_of_settings_has_its_comment(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    for name in FILES:
        text = (tmp_path / name).read_text()
        assert text.count("#") >= 5


def test_two_sample_queries_with_contracts_for_every_field_they_select(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    queries = load_settings(tmp_path).sources["google_ads"].queries
    assert list(queries) == ["campaign_daily", "ad_group_daily"]
    for query in queries.values():
        assert "segments.date = '{logical_date}'" in query.text
        selected = re.findall(r"[a-z_]+\.[a-z_]+", query.text.partition("FROM")[0])
        columns = query.contracts[query.schema_version].columns
        assert [column.name for column in columns] == [field.replace(".", "_") for field in selected]


@pytest.mark.parametrize("existing", FILES)
def test_it_overwrites_nothing_and_changes_nothing(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).parent.mkdir(exist_ok=True)
    (tmp_path / existing).write_text("mine")
    refused = run("init", cwd=tmp_path)
    assert refused.code == 2
    assert existing in refused.said
    assert "remedy: Name another folder, or use --force." in refused.said
    assert files_in(tmp_path) == [existing]
    assert (tmp_path / existing).read_text() == "mine"


def test_force_overwrites_its_own_files_only(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    written = (tmp_path / "sealbook.yaml").read_text()
    (tmp_path / "sealbook.yaml").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    assert run("init", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "sealbook.yaml").read_text() == written
    assert (tmp_path / "notes.txt").read_text() == "mine too"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run("init", "file", cwd=tmp_path)
    assert refused.code == 2
    assert "file/sealbook.yaml cannot be written" in refused.said
