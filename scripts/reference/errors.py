"""The page of errors."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import sealbook
from scripts.reference.docstrings import in_a_row, said
from sealbook.cli.failure import exit_code
from sealbook.errors import SealbookError

_HEAD = """# Errors

Every error that Sealbook raises on purpose is a `SealbookError`. Its text says what happened, `remedy`
says the way out where there is one. Tell errors apart by their class, never by their text: each class says
what the caller should do next. They are in `sealbook.errors`, unless a module is named.

A command says the text, the causes below it and the remedy on stderr, and ends with the exit code.
`sealbook --debug` shows where in the code it was, too.

"""
_EXAMPLE = """
## From a program

```python
import sealbook
from sealbook.errors import ConfigError, SealbookError, Transient

try:
    with sealbook.open("no/such/folder", read_only=True) as book:
        book.table("campaign_daily")
except Transient as error:
    print("try again later", error.retry_after)
except ConfigError as error:
    print(error, error.remedy)
except SealbookError as error:
    raise SystemExit(str(error)) from error
```
"""


_NOT_IMPORTED = ("sealbook.ledger.db.migrations", "sealbook.__main__", "sealbook.airflow", "sealbook.dbt")
"""What does something when it is imported, or needs a tool that is not installed with ours."""


def page() -> str:
    """Return the page."""
    lines = ["| error | is a | meaning | exit code |", "|---|---|---|---|"]
    lines += [_row(kind) for kind in every_error()]
    return _HEAD + "\n".join(lines) + "\n" + _EXAMPLE


def every_error() -> list[type[SealbookError]]:
    """Return the root, then each error after the one that it is a kind of."""
    for module in pkgutil.walk_packages(sealbook.__path__, "sealbook."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    return [SealbookError, *_below(SealbookError)]


def _below(kind: type[SealbookError]) -> Iterator[type[SealbookError]]:
    for each in sorted(kind.__subclasses__(), key=lambda each: each.__name__):
        if each.__module__.startswith("sealbook."):  # a test may have some of its own
            yield each
            yield from _below(each)


def _row(kind: type[SealbookError]) -> str:
    named = f"`{kind.__name__}`"
    if kind.__module__ != SealbookError.__module__:
        named += f", in `{kind.__module__}`"
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    code = int(exit_code(kind.__new__(kind)))
    return f"| {named} | {bases} | {in_a_row(said(kind))} | {code} |"
