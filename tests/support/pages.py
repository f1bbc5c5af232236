"""Pages of the documentation as programs: what a reader would type and write down, in their order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
_DONE_IN_PART = """
sealbook() {
  command sealbook "$@" && return
  code=$?
  test $code -eq 3 || { echo "sealbook $*: exit code $code"; return $code; }
}
"""


class Block(NamedTuple):
    """A fenced block; one with a title is a file of that name."""

    language: str
    file: str | None
    text: str


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, which is named by its path below docs."""
    text = (DOCS / page).read_text("utf-8")
    return [Block(found["language"], found["file"], found["text"]) for found in _BLOCK.finditer(text)]


def follow(
    page: str,
    folder: Path,
    *,
    stand_ins: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    languages: Mapping[str, str] | None = None,
) -> str:
    """Do what a page says in a folder: write its files, run its `sh` and `python`; return all that was shown.

    A stand-in takes the place of what only a reader has, such as the address of a server. A command may be
    done in part (exit code 3); any other failure fails. `languages` gives commands that take further blocks.
    """
    run_by = {"python": "python -", **(languages or {})}
    script = _DONE_IN_PART + "\n".join(_steps(page, run_by))
    for written, meant in (stand_ins or {}).items():
        assert written in script, f"{page} does not say {written!r} any more"
        script = script.replace(written, meant)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, f"{page}: {ended.stdout}"
    return ended.stdout


def _steps(page: str, run_by: Mapping[str, str]) -> Iterator[str]:
    for language, file, text in blocks(page):
        if file is not None:
            yield f"mkdir -p \"$(dirname '{file}')\"\ncat > '{file}' <<'END_OF_BLOCK'\n{text}END_OF_BLOCK"
        elif language == "sh":
            yield text
        elif language in run_by:
            yield f"{run_by[language]} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK"


def shown_default(field: msgspec.structs.FieldInfo) -> str:
    """Return the default of a field as the tables of the reference show it."""
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{json.dumps(field.default_factory())}`"
    if field.default is msgspec.NODEFAULT:
        return "required"
    if isinstance(field.default, msgspec.Struct):
        return "see below"
    return "none" if field.default is None else f"`{json.dumps(field.default)}`"
