"""A group with a command that is meant when none is named: `events RUN_ID` is `events show RUN_ID`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class DefaultGroup(TyperGroup):
    """Its first command is the default one, and is documented under the group's own name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command's name in front of arguments that name no command."""
        asks_for_help = any(arg in ctx.help_option_names for arg in args[:1])
        if not asks_for_help and (not args or args[0] not in self.commands):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)
