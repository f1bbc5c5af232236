"""`sealbook dbt sources`: what is published, as the sources of a dbt project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.output import message
from sealbook.cli.selecting import selects
from sealbook.errors import ConfigError
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.config import Settings
    from sealbook.model.selection import Selection

app = typer.Typer(help="Read what is published from a dbt project.", no_args_is_help=True)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook dbt sources
  sealbook dbt sources --query campaign_daily --output ../shop/models/sealbook.yml
"""


@app.callback()
def _dbt() -> None:
    """Read what is published from a dbt project."""


@app.command(epilog=_EXAMPLES)
@selects(configuration=True)
def sources(
    ctx: typer.Context,  # noqa: ARG001 - every command that selects is given it
    settings: Settings,
    selection: Selection,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to this file, over what is there.")
    ] = None,
) -> None:
    """Write every query as a source of dbt, with its columns and a freshness query, as YAML.

    dbt-duckdb reads them by the plugin `sealbook.dbt`: the how-to about dbt has the profile.
    """
    import yaml

    from sealbook.views.dbt_sources import dbt_sources

    chosen = [
        (source, query)
        for source in settings.sources.values()
        for query in source.queries.values()
        if selection.has_query(source.name, query.name)
    ]
    text = yaml.safe_dump(dbt_sources(chosen), sort_keys=False, width=120)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(
            f"{output} cannot be written: {error.strerror}", remedy="Name a file in a folder that is there."
        ) from error
    message(f"{output}: {counted(len(chosen), 'table')}")
