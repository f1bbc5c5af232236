"""Write the pages."""

from __future__ import annotations

from scripts.reference import FOLDER, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
