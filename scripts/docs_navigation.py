"""Makes the navigation of the site from docs/index.md, so that there is one list of pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_SECTION = r"\*\*(?P<section>[^*]+)\*\*"
_PAGE = r"\[(?P<title>[^]]+)\]\((?P<page>[^)]+\.md)\)"
_LINE = re.compile(rf"(?P<indent> *)- (?:{_SECTION}|{_PAGE})")


def on_config(config: Any) -> Any:
    """Give the site its navigation: a hook of MkDocs."""
    config["nav"] = navigation((Path(config["docs_dir"]) / "index.md").read_text("utf-8"))
    return config


def navigation(index: str) -> list[dict[str, Any]]:
    """Return the pages that an index lists, in its order; what is indented is of the section above."""
    found: list[dict[str, Any]] = [{"Sealbook": "index.md"}]
    section: list[dict[str, str]] = []
    for line in index.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        if match["section"] is not None:
            section = []
            found.append({match["section"]: section})
        elif match["indent"]:
            section.append({match["title"]: match["page"]})
        else:
            found.append({match["title"]: match["page"]})
    return found
