"""Configuration files, and errors that name the file, the field and the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
import yaml

from sealbook.config import strict_yaml
from sealbook.errors import ConfigError, InvalidInput

T = TypeVar("T")

Step = str | int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: a file, and the path of the field in it."""

    file: Path
    text: str = field(repr=False)
    path: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> Place:
        return self.below((step,))

    def below(self, steps: tuple[Step, ...]) -> Place:
        """Return a place further down in the same file."""
        return Place(self.file, self.text, self.path + steps)

    def __str__(self) -> str:
        return f"{_shown(self.file)}: {dotted(self.path)}" if self.path else _shown(self.file)

    def error(self, problem: str, *, remedy: str | None = None) -> ConfigError:
        """Return the error that says what is wrong here, and in which line."""
        line = strict_yaml.line_of(self.text, self.path)
        return ConfigError(f"{self}: {problem} (line {line})", remedy=remedy)

    @contextmanager
    def named(self, *fields: str) -> Iterator[None]:
        """Name this place in what the model finds wrong, or the one of these fields of it that is meant."""
        try:
            yield
        except InvalidInput as error:
            meant = str(error.field).rpartition(" ")[2]  # "rule clicks max_share" is about max_share
            place = self / meant if meant in fields else self
            raise place.error(str(error), remedy=error.remedy) from error


def dotted(path: tuple[Step, ...]) -> str:
    """Return a path as people write it: `sources.demo.customers[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def read_document(file: Path) -> tuple[Any, Place]:
    """Read a YAML file; return what it says, and the place of its top."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{_shown(file)}: not UTF-8 text", remedy="Save the file as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{_shown(file)}: cannot be read: {error.strerror}") from None
    try:
        return strict_yaml.load(text), Place(file, text)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ConfigError(f"{_shown(file)}: not valid YAML: {error.problem}{line}") from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise ConfigError(f"{_shown(file)}: not valid YAML: {error}") from None


def error_in(
    file: Path | None, path: tuple[Step, ...], problem: str, *, remedy: str | None = None
) -> ConfigError:
    """Return the error that says what is wrong with a field of a file, and in which line of it that is.

    What was read from no file has no line.
    """
    if file is None:
        return ConfigError(problem, remedy=remedy)
    _, top = read_document(file)
    return top.below(path).error(problem, remedy=remedy)


def convert(value: object, kind: type[T], place: Place) -> T:
    """Turn what a document says into a struct, or say which field is wrong."""
    try:
        return msgspec.convert(value, kind, builtin_types=(Decimal,))
    except msgspec.ValidationError as error:
        problem = explain(error, kind)
        raise place.below(problem.path).error(problem.text, remedy=problem.remedy) from None


_AT = re.compile(r"(?P<problem>.*) - at `(?P<key>key` in `)?\$(?P<path>.*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_NO_MEMBER = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_UNQUOTED = re.compile(r"Expected `str(?: \| object)?(?: \| null)?`, got `(?:int|float|decimal|bool)`")
_THEIR_WORDS = {
    "Expected": "expected",
    "`str | object`": "text, or a mapping",
    "`str | object | null`": "text, or a mapping",
    "`object`": "a mapping",
    "`array`": "a list",
    "`object | null`": "a mapping",
    "`object | array`": "a list, or a mapping",
    "`int | str | object`": "an id, or a mapping",
    "`decimal`": "`float`",
    "`int | decimal`": "a number",
    "`int | decimal | null`": "a number",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a value that was to become a struct: where below it, what, and the way out."""

    path: tuple[Step, ...]
    text: str
    remedy: str | None = None


def explain(error: msgspec.ValidationError, kind: type) -> Problem:
    """Put into our words what msgspec found wrong with a value of a kind."""
    message = str(error)
    path: tuple[Step, ...] = ()
    if located := _AT.fullmatch(message):
        message = "a key is not text" if located["key"] else located["problem"]
        path = tuple(name or int(index) for name, index in _STEP.findall(located["path"]))
    if unknown := _UNKNOWN.fullmatch(message):
        fields: tuple[str, ...] = getattr(_kind_at(kind, path), "__struct_fields__", ())
        remedy = f"The fields here are: {', '.join(fields)}." if fields else None
        return Problem((*path, unknown[1]), "there is no such field", remedy)
    if missing := _MISSING.fullmatch(message):
        return Problem((*path, missing[1]), "the field is missing", "Write it there: it has no default.")
    if value := _NO_MEMBER.fullmatch(message):
        return Problem(path, f"{value[1]} is not one of {', '.join(_kind_at(kind, path))}")
    remedy = "Put it in quotes." if _UNQUOTED.fullmatch(message) else None
    for theirs, ours in _THEIR_WORDS.items():
        message = message.replace(theirs, ours)
    return Problem(path, message, remedy)


def _kind_at(kind: Any, path: tuple[Step, ...]) -> Any:
    """Return the type that a path leads to from a struct; None where that depends on the value."""
    for step in path:
        if isinstance(step, int):
            kind = next(iter(get_args(kind)), None)
        else:
            kind = get_type_hints(kind).get(step) if isinstance(kind, type) else None
        if isinstance(kind, UnionType):  # what may be left out; or one of several
            kinds = [each for each in get_args(kind) if each is not NoneType]
            kind = kinds[0] if len(kinds) == 1 else None
    return kind


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
