"""What was said for the command as a whole: which book, and how errors are shown."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.views.choosing import day_of

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.config import Settings
    from sealbook.model import RunId

CONFIG_VARIABLE = "SEALBOOK_CONFIG"
_RUN_OPTIONS = {"--run-id", "--run"}


@dataclass
class Invocation:
    """Filled in while the command line is parsed; every command finds it as `ctx.obj`."""

    arguments: Sequence[str] = ()
    config: str | None = None
    debug: bool = False
    has_begun: bool = False
    """Whether the command has begun with something that it can go on with when it is given again."""
    run_id: RunId | None = None
    """The run of it, which going on needs to name."""

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Invocation:
        """Start from what the environment says; the command line comes after and wins."""
        return cls(arguments, config=os.environ.get(CONFIG_VARIABLE) or None)

    def goes_on_by(self, arguments: Sequence[str], run_id: RunId) -> None:
        """Go on by another command than this one."""
        self.arguments, self.run_id, self.has_begun = arguments, run_id, True

    def command_to_go_on(self) -> str | None:
        """Return what to paste into a shell, today or later; None if there is nothing to go on with."""
        if not self.has_begun:
            return None
        command = ["sealbook", *map(_lasting, self.arguments)]
        if self.run_id is not None and not _RUN_OPTIONS & {each.partition("=")[0] for each in command}:
            command += ["--run-id", self.run_id]
        return shlex.join(command)


def _lasting(argument: str) -> str:
    """Put the day itself in the place of a word that means another day tomorrow."""
    option, equals, word = argument.rpartition("=")
    day = day_of(word)
    return argument if day is None else f"{option}{equals}{day}"


def open_book(ctx: typer.Context) -> Book:
    """Open the book that the command is about."""
    from sealbook.book import Book

    return Book(load_settings(ctx))


def load_settings(ctx: typer.Context) -> Settings:
    """Read the settings of the book that the command is about, and open nothing."""
    from sealbook import config

    settings = config.load_settings(ctx.obj.config)
    return replace(settings, spark=replace(settings.spark, for_command=True))


def _use_config(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        ctx.obj.config = value


def _use_debug(ctx: typer.Context, value: bool) -> None:
    ctx.obj.debug = ctx.obj.debug or value


ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help=f"A sealbook.yaml or its folder; else ${CONFIG_VARIABLE}, else the nearest one upwards.",
        callback=_use_config,
        expose_value=False,
        rich_help_panel="Common options",
    ),
]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show a traceback when the command fails.",
        callback=_use_debug,
        expose_value=False,
        rich_help_panel="Common options",
    ),
]
COMMON_OPTIONS = ("config", "debug")
