"""What was said for the command as a whole: which book, and how errors are shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import sealbook

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.config import Settings

CONFIG_VARIABLE = "SEALBOOK_CONFIG"


@dataclass
class Invocation:
    """Filled in while the command line is parsed; every command finds it as `ctx.obj`."""

    config: str | None = None
    debug: bool = False

    @classmethod
    def from_environment(cls) -> Invocation:
        """Start from what the environment says; the command line comes after and wins."""
        return cls(config=os.environ.get(CONFIG_VARIABLE) or None)


def open_book(ctx: typer.Context) -> Book:
    """Open the book that the command is about."""
    return sealbook.open(ctx.obj.config)


def load_settings(ctx: typer.Context) -> Settings:
    """Read the settings of the book that the command is about, and open nothing."""
    from sealbook import config

    return config.load_settings(ctx.obj.config)


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
