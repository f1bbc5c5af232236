"""Blocks of every page are well formed, and what they import is there; tests of pages run what can be run."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from tests.support.pages import DOCS, Block, blocks

PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
SIGNATURES = "reference/python.md"
"""Written from the code, by its syntax tree: it shows how things are called, which is no program."""


def _ini(text: str) -> list[str]:
    parser = ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser.sections()


READERS: dict[str, Callable[[str], object]] = {
    "yaml": yaml.safe_load,
    "json": json.loads,
    "toml": tomllib.loads,
    "ini": _ini,
}
BLOCKS = [(page, each) for page in PAGES if page != SIGNATURES for each in blocks(page)]


def of(*languages: str) -> list[pytest.ParameterSet]:
    return [
        pytest.param(each, id=f"{page}-{number}")
        for number, (page, each) in enumerate(BLOCKS)
        if each.language in languages
    ]


@pytest.mark.parametrize("block", of("python"))
def test_python_compiles_and_imports_what_there_is(block: Block) -> None:
    tree = ast.parse(block.text)
    ours = [node for node in tree.body if isinstance(node, ast.ImportFrom) and _is_ours(node)]
    exec(compile(ast.Module(list(ours), []), "page", "exec"), {})


def _is_ours(node: ast.ImportFrom) -> bool:
    module = node.module or ""
    return module.partition(".")[0] == "sealbook" and module != "sealbook.airflow"  # Airflow lies apart


@pytest.mark.parametrize("block", of(*READERS))
def test_documents_can_be_read(block: Block) -> None:
    assert READERS[block.language](block.text)


@pytest.mark.parametrize("block", of("sh"))
def test_commands_can_be_parsed(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True)


def test_the_languages_are_those_that_are_looked_at() -> None:
    """A block in another language would be looked at by nobody."""
    assert {each.language for _, each in BLOCKS} <= {
        "python",
        "yaml",
        "json",
        "toml",
        "ini",
        "sh",
        "sql",
        "text",
    }


def test_the_program_of_the_page_of_errors(tmp_path: Path) -> None:
    [program] = [each.text for each in blocks("reference/errors.md")]
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "no/such/folder" in ended.stdout
