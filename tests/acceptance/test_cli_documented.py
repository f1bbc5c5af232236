"""Every command and every option is in docs/reference/cli.md, and nothing is there that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperArgument, TyperGroup

from sealbook.cli.app import command
from sealbook.cli.invocation import COMMON_OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def leaves(group: TyperGroup, path: str = "sealbook") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if isinstance(each, TyperGroup):
            yield from leaves(each, f"{path} {name}")
        else:
            yield f"{path} {name}", each


COMMANDS = dict(leaves(command()))


def test_the_commands_of_the_page_are_those_there_are() -> None:
    assert [title for title in SECTIONS if title.startswith("sealbook ")] == list(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_the_options_of_a_section_are_those_of_its_command(path: str) -> None:
    documented = set(re.findall(r"^\| `(-?-?[A-Za-z][\w-]*)", SECTIONS[path], re.MULTILINE))
    own = [param for param in COMMANDS[path].params if param.name not in COMMON_OPTIONS]
    assert documented == {_written(param) for param in own}


def _written(param: Any) -> str:
    return str(param.metavar).strip("[]") if isinstance(param, TyperArgument) else str(param.opts[0])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_the_common_options(path: str) -> None:
    assert set(COMMON_OPTIONS) <= {param.name for param in COMMANDS[path].params}
    assert path in SECTIONS[path]


@pytest.mark.parametrize("name", ["config", "debug", "version", "install_completion", "show_completion"])
def test_the_options_of_sealbook_itself(name: str) -> None:
    assert name in {param.name for param in command().params}
    assert f"`--{name.replace('_', '-')}" in SECTIONS["For every command"]
