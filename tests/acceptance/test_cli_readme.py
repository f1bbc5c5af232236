"""What README.md tells a newcomer to type works as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    commands = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[0]
    demo, rest = commands.split("\n", 1)
    assert demo.startswith("make demo")  # test_cli_demo runs it, in the environment that it makes
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    ended = subprocess.run(["sh", "-e", "-c", rest], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "google_ads/1234567890/campaign_daily/2026-01-01  pending" in ended.stdout


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
