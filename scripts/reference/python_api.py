"""The page of what programs may call."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property
from types import ModuleType

import sealbook
from scripts.reference.docstrings import in_a_row, said
from sealbook import model
from sealbook.book import Book, BookReader
from sealbook.control.backfills import Backfill
from sealbook.control.operating import Operator
from sealbook.control.previews import Preview
from sealbook.extract import source
from sealbook.model.selection import Selection

_HEAD = """# Python

What a program may call. What is not on this page is for Sealbook's own parts, and may change without a word
in the changelog; [the ledger](ledger.md) and [the run-event store](run-store.md) have pages of their own for
who builds on them. Signatures are as in the code; everything is typed.

"""
_BOOK = """`sealbook.open(path)` gives a `Book`. `sealbook.open(path, read_only=True)` and `Book.reader` give
a `BookReader`: what it has a `Book` has, too."""
_MODEL = """In `sealbook.model`: what keys, states, verdicts and events are. Pure values, which compare by
what they say."""


def page() -> str:
    """Return the page."""
    parts = [
        _HEAD.strip(),
        "## sealbook",
        _function("sealbook.open", sealbook.open),
        _class(Selection),
        "## A book",
        _BOOK,
        _class(BookReader),
        _class(Book, without=set(_members(BookReader))),
        "## An operator's actions",
        "`Book.operator` has them; [`sealbook state`](cli.md#sealbook-state-retry) has the commands.",
        _class(Operator),
        _class(Preview),
        _class(Backfill),
        "## A source of your own",
        "In `sealbook.extract.source`; [how to add one](../how-to/add-a-source.md).",
        *(
            _class(getattr(source, name))
            for name in (
                "Source",
                "Checkable",
                "Ranged",
                "Examinable",
                "Remark",
                "Discovers",
                "DiscoveredAccount",
            )
        ),
        *(_function(name, getattr(source, name)) for name in ("load_source", "read_options")),
        "## The model",
        _MODEL,
        _names(model),
    ]
    return "\n\n".join(parts) + "\n"


def _class(kind: type, without: Iterable[str] = ()) -> str:
    members = {name: each for name, each in _members(kind).items() if name not in set(without)}
    lines = [f"### {kind.__name__}", "", said(kind), ""]
    values = [name for name, each in members.items() if not callable(each) and not _is_method(each)]
    if values:
        lines += ["| has | |", "|---|---|"]
        lines += [f"| `{name}` | {in_a_row(said(_target(members[name])))} |" for name in values]
    for name, each in members.items():
        if name not in values:
            lines += ["", _function(f"{kind.__name__}.{name}", _target(each), heading="####")]
    return "\n".join(lines).strip()


def _members(kind: type) -> dict[str, object]:
    """Return what is public of a class and its bases within Sealbook, as it is written there."""
    found: dict[str, object] = {}
    for base in kind.__mro__:
        if not base.__module__.startswith("sealbook"):
            continue
        for name, each in vars(base).items():
            if not name.startswith("_") and (_is_method(each) or _is_value(each)):
                found.setdefault(name, each)
    return dict(sorted(found.items()))


def _is_method(each: object) -> bool:
    return inspect.isfunction(each) or isinstance(each, classmethod | staticmethod)


def _is_value(each: object) -> bool:
    return isinstance(each, property | cached_property)


def _target(each: object) -> object:
    if isinstance(each, property):
        return each.fget
    if isinstance(each, cached_property):
        return each.func
    return each.__func__ if isinstance(each, classmethod | staticmethod) else each


def _function(name: str, function: object, heading: str = "###") -> str:
    return f"{heading} {name}\n\n```python\n{_signature(function)}\n```\n\n{said(function)}"


def _signature(function: object) -> str:
    """Return how a function is called, as its source has it."""
    text = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
    [node] = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    first, rest = node.args.args[:1], node.args.args[1:]
    if first and first[0].arg in ("self", "cls"):
        node.args.args = rest
    arguments = list(_arguments(node.args))
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({', '.join(arguments)}){returned}"
    if len(line) <= 100:
        return line
    return f"{node.name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){returned}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    plain = len(arguments.args) - len(arguments.defaults)
    for index, each in enumerate(arguments.args):
        yield _argument(each, arguments.defaults[index - plain] if index >= plain else None)
    if arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(each, default)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _names(module: ModuleType) -> str:
    lines = ["| name | |", "|---|---|"]
    for name in module.__all__:
        thing = getattr(module, name)
        text = said(thing).split("\n\n")[0] if not isinstance(thing, str) else ""
        if isinstance(thing, type) and issubclass(thing, enum.Enum):
            text += " " + ", ".join(f"`{each.name}`" for each in thing) + "."
        lines.append(f"| `{name}` | {in_a_row(text)} |")
    return "\n".join(lines)
