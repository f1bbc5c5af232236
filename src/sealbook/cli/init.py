"""`sealbook init`: the files of a new book."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from sealbook.cli.output import message
from sealbook.errors import ConfigError

app = typer.Typer()

_TEMPLATES = {"sealbook.yaml": "sealbook.yaml", "config/google_apis.yaml": "google_apis.yaml"}
"""Each file of a new book, and the template that it starts as."""

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook init
  sealbook init my_book
"""


@app.command(epilog=_EXAMPLES)
def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of the book.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a commented sealbook.yaml, and a catalogue with two sample queries and their contracts."""
    targets = {folder / name: template for name, template in _TEMPLATES.items()}
    existing = [str(target) for target in targets if target.exists()]
    if existing and not force:
        raise ConfigError(
            f"{' and '.join(existing)} would be overwritten; nothing was changed",
            remedy="Name another folder, or use --force.",
        )
    templates = files("sealbook") / "templates"
    for target, template in targets.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((templates / template).read_bytes())
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}") from None
        message(f"Wrote {target}")
    message(
        "Next: put your accounts and queries into them; `sealbook contract check` says what is wrong there."
        " Then `sealbook run --day yesterday`."
    )
