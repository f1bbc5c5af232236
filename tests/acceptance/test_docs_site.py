"""The documentation builds as a site: strictly, and without anything from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.docs_navigation import navigation

ROOT = Path(__file__).parents[2]
_ASKED_FOR = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)"
)
_IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = Path(sys.executable).with_name("mkdocs")
    ended = subprocess.run(
        [mkdocs, "build", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9"},
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert pages
    assert [page for page in pages if not (site / page).is_file()] == []


def test_nothing_is_asked_for_elsewhere(site: Path) -> None:
    """Neither a font nor a script, a style or a picture: it works without a network."""
    assert [page.name for page in site.rglob("*.html") if _ASKED_FOR.search(page.read_text("utf-8"))] == []
    assert [style.name for style in site.rglob("*.css") if _IN_STYLES.search(style.read_text("utf-8"))] == []


def test_the_navigation_is_the_index() -> None:
    index = [
        "- [Tutorial](tutorial.md): first",
        "- **How to**: for some tasks",
        "  - [Mend](how-to/mend.md)",
        "Text with a [link](no.md).",
        "- [Words](words.md)",
    ]
    assert navigation("\n".join(index)) == [
        {"Sealbook": "index.md"},
        {"Tutorial": "tutorial.md"},
        {"How to": [{"Mend": "how-to/mend.md"}]},
        {"Words": "words.md"},
    ]
