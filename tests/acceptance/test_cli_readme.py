"""What README.md tells a newcomer to type works as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent


@pytest.mark.timeout(1_200)
@pytest.mark.xdist_group("spark")
def test_the_commands_of_the_readme_in_a_fresh_clone(tmp_path: Path) -> None:
    """Nothing but what is committed, and an environment that `make demo` itself has made."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
    commands, program = (_block(clone, language) for language in ("sh", "python"))
    kept_out = {"VIRTUAL_ENV", "PYTHONPATH", "PYSPARK_PYTHON", "SEALBOOK_CONFIG"}
    env = {name: value for name, value in os.environ.items() if name not in kept_out}
    env["PATH"] = os.pathsep.join(each for each in env["PATH"].split(os.pathsep) if each != str(BIN))

    ended = subprocess.run(["sh", "-e", "-c", commands], cwd=clone, env=env, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "sealbook explain demo/1012/campaign_daily/2026-01-07" in ended.stderr
    assert (clone / "my_book" / "sealbook.yaml").exists()
    assert not (clone / ".venv" / "bin" / "pytest").exists(), "the developers' extras are not needed to run"
    asked = subprocess.run(
        [".venv/bin/python", "-c", program], cwd=clone, env=env, capture_output=True, text=True
    )
    assert "demo/1012/campaign_daily/2026-01-07 failed" in asked.stdout, asked.stderr


def test_the_readme_is_short_and_has_two_commands() -> None:
    assert len(README.splitlines()) < 150
    assert [line.split()[0] for line in _block(ROOT, "sh").splitlines()] == ["make", ".venv/bin/sealbook"]


def _block(folder: Path, language: str) -> str:
    text = (folder / "README.md").read_text()
    [found] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\bmake ([a-z]+)\b", (ROOT / page).read_text()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page} names `make {target}`"


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page}: {target}"


def test_every_page_of_the_docs_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "index.md").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert linked == pages
