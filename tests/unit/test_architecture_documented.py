"""The architecture page shows the imports that there are; the glossary is in order; the index is whole."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "sealbook"
PAGE = (DOCS / "explanation" / "architecture.md").read_text("utf-8")
WORDS = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)


def place(name: str) -> str:
    """Name a part of the package as the page does: `ledger/`, `errors.py`, or `__init__.py` for the root."""
    if (PACKAGE / name).is_dir():
        return f"{name}/"
    return f"{name}.py" if (PACKAGE / f"{name}.py").is_file() else "__init__.py"


def imported(file: Path) -> Iterator[str]:
    """Yield the parts that a file imports, be it at the top, in a function or for its types alone."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, _, rest = name.partition(".")
            if root == "sealbook":
                yield place(rest.partition(".")[0] or "__init__")


def layers() -> list[str]:
    """Return the parts of the package from the top to the bottom, as the import rules have them."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [rule] = (each for each in rules if each["name"] == "Imports go down only")
    named = [name.strip() for layer in rule["layers"] for name in layer.split("|")]
    return ["__main__.py", "__init__.py", *(place(name.removeprefix("sealbook.")) for name in named)]


def drawing() -> str:
    """Draw every part of the package with the other parts that it imports, lower ones further right."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        part = place(file.relative_to(PACKAGE).parts[0].removesuffix(".py"))
        found[part] |= {*imported(file)} - {part}
    order = layers()
    assert set(order) == set(found), "the import rules do not name every part of the package"
    lines = [f"{part:<12}→ {' '.join(sorted(found[part], key=order.index))}".rstrip(" →") for part in order]
    return "\n".join(lines)


def test_the_page_shows_the_imports_that_there_are() -> None:
    block = f"```\n{drawing()}\n```"
    assert block in PAGE, f"the page is not true; paste this:\n{block}"


def test_the_glossary_has_each_word_once_and_in_alphabetical_order() -> None:
    assert WORDS
    assert sorted(set(WORDS), key=str.casefold) == WORDS


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (DOCS / "index.md").read_text("utf-8")))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}
    assert linked == pages
