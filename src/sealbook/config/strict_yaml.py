"""YAML in which nothing is guessed: `no`, `2026-01-01` and `0123456789` are text, and no key stands twice.

A number with a fraction is a decimal: what is written, to the last digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # a PyYAML that was built without libyaml: slower, else the same
    from yaml import SafeLoader  # type: ignore[assignment]

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"

# Unlike YAML 1.1, which PyYAML follows: no dates, no octal and base-60 numbers, no `yes` and `off`, no .inf.
# For each kind of scalar: its form, the letters that it begins with, and what it means.
_SCALARS: dict[str, tuple[str, list[str], Callable[[str], object]]] = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], lambda _: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    "int": (r"-?(?:0|[1-9][0-9]*)", list("-0123456789"), int),
    "float": (
        r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?",
        list("-.0123456789"),
        Decimal,
    ),
    "merge": (r"<<", ["<"], str),
    "str": (r"(?s:.*)", [], str),
}


class _Loader(SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - how PyYAML wants it declared
    yaml_constructors = {None: SafeLoader.yaml_constructors[None]}  # noqa: RUF012 - refuses other tags


def load(text: str) -> Any:
    """Return what a document says, or raise YAMLError."""
    return yaml.load(text, _Loader)


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line of a field, counted from 1, or of the nearest thing around it that is there."""
    node = yaml.compose(text, _Loader)
    line = 0 if node is None else node.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            entry = next((entry for entry in node.value if entry[0].value == str(step)), None)
            if entry is None:
                break
            line, node = entry[0].start_mark.line, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line
    return int(line) + 1


def _list(loader: _Loader, node: yaml.Node) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise _error("a list is expected", node)
    # Built at once; PyYAML's own way fills it in later, and lets a list contain itself.
    return [loader.construct_object(each) for each in node.value]


def _mapping(loader: _Loader, node: yaml.Node) -> dict[Any, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise _error("a mapping is expected", node)
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _error("a key is not text", key)
        if key.value in seen and key.tag != _MERGE:
            raise _error(f"the key {key.value!r} stands twice", key)
        seen.add(key.value)
    loader.flatten_mapping(node)
    return {loader.construct_object(key): loader.construct_object(value) for key, value in node.value}


def _scalar(name: str, form: re.Pattern[str], meaning: Callable[[str], object]) -> Callable[..., object]:
    def construct(_loader: _Loader, node: yaml.Node) -> object:
        # Only a tag that the author wrote can disagree with the form.
        if not isinstance(node, yaml.ScalarNode) or form.fullmatch(node.value) is None:
            raise _error(f"this is no {name}", node)
        try:
            return meaning(node.value)
        except (ValueError, ArithmeticError):  # more digits, or a greater exponent, than Python takes
            raise _error(f"this {name} is beyond all bounds", node) from None

    return construct


def _error(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


for _name, (_form, _first_letters, _meaning) in _SCALARS.items():
    if _first_letters:
        _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_form})\Z"), _first_letters)
    _Loader.add_constructor(f"{_TAG}{_name}", _scalar(_name, re.compile(_form), _meaning))
_Loader.add_constructor(f"{_TAG}seq", _list)
_Loader.add_constructor(f"{_TAG}map", _mapping)
