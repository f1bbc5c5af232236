"""Commands start light: none of these imports Spark, Arrow, an object store or the Google client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import run, run_process

HEAVY = ("pyspark", "py4j", "pyarrow", "obstore", "alembic", "duckdb", "google", "grpc", "pandas", "numpy")

COMMANDS = [
    ["--help"],
    ["--version"],
    ["init", "--force"],
    ["state", "inspect"],
    ["state", "inspect", "--format", "json"],
    ["state", "inspect", "google_ads/1234567890/campaign_daily/2026-01-01"],
    ["state", "history", "google_ads/1234567890/campaign_daily/2026-01-01"],
    ["runs"],
    ["ledger", "version"],
    ["ledger", "migrate"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book whose ledger is there already: only making one needs Alembic."""
    path = tmp_path_factory.mktemp("book")
    run("init", cwd=path)
    run("state", "inspect", cwd=path)
    return path


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_nothing_heavy_is_imported(folder: Path, arguments: list[str]) -> None:
    program = (
        "import sys; from sealbook.cli import main; code = main(sys.argv[1:]);"
        f"heavy = sorted({{name.partition('.')[0] for name in sys.modules}} & set({HEAVY!r}));"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr


def test_the_package_itself_imports_next_to_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import sealbook;"
        "print(sorted(name for name in set(sys.modules) - before if name.partition('.')[0] not in"
        " sys.stdlib_module_names))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "['sealbook']"


def test_version(tmp_path: Path) -> None:
    import sealbook

    assert run_process("--version", cwd=tmp_path).out == f"sealbook {sealbook.__version__}\n"


def test_it_is_a_module_too(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "sealbook", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.startswith("sealbook ")


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", [[], ["init"], ["state", "inspect"], ["state", "history"]], ids=" ".join)
def test_help_has_examples(tmp_path: Path, command: list[str], flag: str) -> None:
    ran = run(*command, flag, cwd=tmp_path)
    assert ran.code == 0
    assert "Examples" in ran.out
    assert f" sealbook {' '.join(command)}" in ran.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_can_be_had(tmp_path: Path, shell: str) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ran = run("--show-completion", shell, cwd=tmp_path, env=env)
    assert ran.code == 0
    assert "_SEALBOOK_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sealbook ", {"init", "state", "ledger"}),
        ("sealbook state ", {"inspect", "history"}),
        ("sealbook state inspect --st", {"--status"}),
        ("sealbook state inspect --status ", {"pending", "success", "failed"}),
        ("sealbook state inspect --format j", {"json"}),
    ],
)
def test_completion_offers_what_fits(tmp_path: Path, typed: str, offered: set[str]) -> None:
    words = typed.split()
    env = {
        **os.environ,
        "_SEALBOOK_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) if typed.endswith(" ") else len(words) - 1),
    }
    assert offered <= set(run_process(cwd=tmp_path, env=env).out.split())
