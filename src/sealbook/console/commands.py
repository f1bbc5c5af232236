"""The command that does what a page does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sealbook.model.selection import Selection

_OPTIONS = {
    "source": "source",
    "customers": "customer",
    "queries": "query",
    "since": "since",
    "until": "until",
}


def command_of(command: str, selection: Selection, **options: object) -> str:
    """Return a command that chooses the same, by keys or options, with some options more; None is none."""
    chosen = {option: getattr(selection, name) for name, option in _OPTIONS.items()}
    return " ".join([command, *map(str, selection.keys), *_written(chosen | options)])


def _written(options: dict[str, object]) -> Iterator[str]:
    for name, value in options.items():
        values = value if isinstance(value, list | tuple) else () if value is None else (value,)
        for each in values:
            yield f"--{name} {shlex.quote(str(each))}"
