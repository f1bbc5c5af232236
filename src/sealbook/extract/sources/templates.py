"""Texts with places for a partition's key: `{customer_id}`, `{query_name}`, `{logical_date}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_DAY = re.compile(r"logical_date(?P<days>[+-][0-9]{1,4})?(?::(?P<form>.+))?")
_FORM = re.compile(r"(?:%[YymdjGVu%]|[^%])+")
_UNIX = "unix"
_EXPECTED = "{customer_id}, {query_name}, {logical_date}, {logical_date-1} or {logical_date:%Y%m%d}"

_Fill = Callable[[PartitionKey], str]


class Template(str):
    """A text with places for a key. `{{` and `}}` are braces of its own."""

    _pieces: tuple[str | _Fill, ...]

    def __new__(cls, text: str) -> Self:
        """Read a template; InvalidInput names a place that is none."""
        made = super().__new__(cls, text)
        made._pieces = tuple(_pieces(text))
        return made

    @property
    def has_day(self) -> bool:
        """Whether the day is in it."""
        return any(isinstance(piece, _Day) for piece in self._pieces)

    def fill(self, key: PartitionKey) -> str:
        """Return the text for a partition."""
        return "".join(piece if isinstance(piece, str) else piece(key) for piece in self._pieces)


@dataclass(frozen=True, slots=True)
class _Day:
    """The day of a key, or one so many days later, in a form."""

    days: int
    form: str | None

    def __call__(self, key: PartitionKey) -> str:
        try:
            day = key.logical_date + timedelta(days=self.days)
        except OverflowError:
            raise InvalidInput(
                f"{key}: there is no day {self.days:+} from it", field="logical_date", value=key.logical_date
            ) from None
        return _written(day, self.form)


def _written(day: date, form: str | None) -> str:
    if form is None:
        return day.isoformat()
    if form == _UNIX:
        return str(int(datetime.combine(day, time(), UTC).timestamp()))
    return day.strftime(form)


def _customer(key: PartitionKey) -> str:
    return key.customer_id


def _query(key: PartitionKey) -> str:
    return key.query_name


def _pieces(text: str) -> Iterator[str | _Fill]:
    done = 0
    for match in _PIECE.finditer(text):
        yield text[done : match.start()]
        done = match.end()
        if match[0] in ("{{", "}}"):
            yield match[0][0]
        elif match[1] is None:
            raise InvalidInput.of(
                "template", text, f"no brace alone; two of them stand for one: {match[0] * 2}"
            )
        else:
            yield _place(match[1])
    yield text[done:]


def _place(name: str) -> _Fill:
    if name == "customer_id":
        return _customer
    if name == "query_name":
        return _query
    day = _DAY.fullmatch(name)
    if day is None:
        raise InvalidInput.of("template", f"{{{name}}}", _EXPECTED)
    form = day["form"]
    if form is not None and form != _UNIX and _FORM.fullmatch(form) is None:
        raise InvalidInput.of("template", f"{{{name}}}", f"%Y, %y, %m, %d, %j, %G, %V, %u, %% or {_UNIX}")
    return _Day(int(day["days"] or 0), form)
