"""The tree of commands. A command's module is imported when it is called, so that the others cost nothing."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sealbook import __version__
from sealbook.cli.invocation import COMMON_OPTIONS, ConfigOption, DebugOption

MODULES = {
    "init": "sealbook.cli.init",
    "demo": "sealbook.cli.demo",
    "accounts": "sealbook.cli.accounts",
    "run": "sealbook.cli.run",
    "extract": "sealbook.cli.extract",
    "validate": "sealbook.cli.validate",
    "load": "sealbook.cli.load",
    "warehouse": "sealbook.cli.warehouse",
    "status": "sealbook.cli.status",
    "explain": "sealbook.cli.explain",
    "coverage": "sealbook.cli.coverage",
    "sql": "sealbook.cli.sql",
    "diff": "sealbook.cli.diff",
    "drift": "sealbook.cli.drift",
    "changes": "sealbook.cli.changes",
    "consumers": "sealbook.cli.consumers",
    "dbt": "sealbook.cli.dbt",
    "mirror": "sealbook.cli.mirror",
    "contract": "sealbook.cli.contract",
    "source": "sealbook.cli.source",
    "raw": "sealbook.cli.raw",
    "state": "sealbook.cli.state",
    "backfill": "sealbook.cli.backfill",
    "control": "sealbook.cli.control",
    "audit": "sealbook.cli.audit",
    "runs": "sealbook.cli.runs",
    "events": "sealbook.cli.events",
    "project": "sealbook.cli.project",
    "lineage": "sealbook.cli.lineage",
    "ledger": "sealbook.cli.ledger",
    "console": "sealbook.cli.console",
    "doctor": "sealbook.cli.doctor",
}
"""Each command or group of the top level, and the module whose `app` it is."""

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook init my_book
  sealbook state inspect --status failed
  sealbook state history google_ads/1234567890/campaign_daily/2026-01-01

[bold]Exit codes[/bold]
  0 done, 1 failed, 2 wrong usage or configuration, 3 done in part
"""


class _Commands(UserDict[str, Any]):
    """The commands by name, each loaded when it is looked up."""

    def __init__(self, adopt: Callable[[Any], None]) -> None:
        super().__init__(MODULES)
        self._adopt = adopt

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            found = get_command(import_module(found).app)
            found.name = name
            # Typer thinks that each app is a program; completion is of the whole program only.
            found.params = [param for param in found.params if not param.name.endswith("_completion")]
            self._adopt(found)
            self.data[name] = found
        return found


class _LazyGroup(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(self._adopt)

    def _adopt(self, command: Any) -> None:
        """Let the common options be given after a command's name too."""
        if isinstance(command, TyperGroup):
            for each in command.commands.values():
                self._adopt(each)
        else:
            command.params += [param for param in self.params if param.name in COMMON_OPTIONS]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sealbook {__version__}")
        raise typer.Exit


_app = typer.Typer(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True
)


@_app.callback(epilog=_EXAMPLES)
def _sealbook(
    config: ConfigOption = None,
    debug: DebugOption = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True, expose_value=False
        ),
    ] = False,
) -> None:
    """Which slice of a pipeline is safe to consume, and which run of it."""
    del config, debug, version  # their callbacks have done all there is to do


def command() -> Any:
    """Return the whole command, ready to be run."""
    return get_command(_app)
