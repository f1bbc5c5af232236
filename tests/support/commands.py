"""Commands that are named to people are commands that there are."""

from __future__ import annotations

import shlex
from typing import Any

from typer.core import TyperGroup

from sealbook.cli.app import command
from sealbook.cli.invocation import Invocation


def check_command(text: str) -> None:
    """Parse a command as the shell and `sealbook` would, with all its options, and do not run it."""
    program, *arguments = shlex.split(text)
    assert program == "sealbook"
    parsed: Any = command()
    context = parsed.make_context(program, arguments, obj=Invocation())
    while isinstance(parsed, TyperGroup):
        name, parsed, rest = parsed.resolve_command(context, [*context._protected_args, *context.args])
        assert parsed is not None, text
        context = parsed.make_context(name, rest, parent=context)
