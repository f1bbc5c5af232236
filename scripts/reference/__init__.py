"""Pages of docs/reference that are written from the code: what the code says is said there, and nothing else.

`make reference` writes them; a test fails while they say something else than the code.
"""

from __future__ import annotations

from pathlib import Path

from scripts.reference import errors, python_api, tables

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
_NOTE = "<!-- Written from the code by `make reference`: change it there. -->\n\n"


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    written = {
        "errors.md": errors.page(),
        "python.md": python_api.page(),
        "tables.md": tables.page(),
    }
    return {name: _NOTE + text for name, text in written.items()}
