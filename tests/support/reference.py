"""What a verdict and a read must say, worked out anew in plain Python: no line of Sealbook's own is used.

It is slow and obvious on purpose. Where it and Sealbook differ, one of them is wrong.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

Found = tuple[bool, int, tuple[int, ...]]
"""Whether a check passes, how many lines offend, and the first five of them."""
Row = dict[str, Any]

DEEPEST = 100
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))?", re.ASCII
)


@dataclass(frozen=True)
class RuleModel:
    """A rule about a column: its SQL, and the same in Python; None is null."""

    sql: str
    column: str
    holds: Callable[[Any], bool | None] = field(compare=False)
    share: Fraction = Fraction(0)
    count: int = 0


@dataclass(frozen=True)
class ContractModel:
    """What a contract asks for."""

    types: Mapping[str, str]
    required: frozenset[str]
    key: tuple[str, ...]
    date_column: str | None
    rules: tuple[RuleModel, ...]
    allow_empty: bool
    strict: bool
    least: int | None
    least_ratio: Fraction | None


@dataclass
class Checks:
    """What is found in a payload that is what was sealed."""

    accepted: bool
    found: dict[str, Found]
    rows: list[Row]


def judge(
    contract: ContractModel, payload: bytes, day: date, record_count: int, history: Sequence[int]
) -> Checks:
    """Judge a payload that is what was sealed; `history` has the counts of accepted runs, oldest first."""
    lines = payload.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    bad: dict[str, list[int]] = {name: [] for name in ("json", "types", "required", "extra_columns")}
    rows: list[tuple[int, Row]] = []
    for number, line in enumerate(lines, start=1):
        members = members_of(line, contract.types)
        if members is None:
            bad["json"].append(number)
            continue
        types = contract.types
        if any(name not in types or has_extra(value, types[name]) for name, value in members):
            bad["extra_columns"].append(number)
        row: Row = dict.fromkeys(contract.types)
        fits = True
        for name, value in members:
            if name in contract.types and value is not None:
                is_json = contract.types[name] == "json"
                row[name] = texts_of(line)[name] if is_json else typed(value, contract.types[name])
                fits = fits and row[name] is not None
        if not fits:
            bad["types"].append(number)
            continue
        rows.append((number, row))
        if any(row[name] is None for name in contract.required):
            bad["required"].append(number)
    found = {"metadata": PASSED, "payload_bytes": PASSED, "payload_sha256": PASSED, "json": _of(bad["json"])}
    found["record_count"] = PASSED if record_count == len(lines) else (False, 1, ())
    found |= {name: _of(bad[name]) for name in ("types", "required", "extra_columns")}
    if contract.key:
        found["primary_key"] = _of(list(_repeated(rows, contract.key)))
    if contract.date_column is not None:
        found["date_column"] = _of(
            [number for number, row in rows if str(row[contract.date_column]) != day.isoformat()]
        )
    found["not_empty"] = PASSED if lines or contract.allow_empty else (False, 1, ())
    if contract.least is not None or contract.least_ratio is not None:
        few = contract.least is not None and len(lines) < contract.least
        last = history[-5:]
        if last and contract.least_ratio is not None:
            few = few or len(lines) * len(last) < contract.least_ratio * sum(last)
        found["row_count"] = (False, 1, ()) if few else PASSED
    for place, rule in enumerate(contract.rules):
        violating = [number for number, row in rows if rule.holds(row[rule.column]) is not True]
        _, count, first = _of(violating)
        found[f"rule{place}"] = (count <= rule.count or count <= rule.share * len(rows), count, first)
    failed = {name for name, (passed, _, _) in found.items() if not passed}
    if not contract.strict:
        failed.discard("extra_columns")
    return Checks(not failed, found, [row for _, row in rows])


PASSED: Found = (True, 0, ())


def _of(numbers: list[int]) -> Found:
    return (not numbers, len(numbers), tuple(numbers[:5]))


def _repeated(rows: list[tuple[int, Row]], key: tuple[str, ...]) -> Iterator[int]:
    seen = set()
    for number, row in rows:
        values = tuple(row[name] for name in key)  # 0.0 and -0.0 are equal in Python as well
        if values in seen:
            yield number
        seen.add(values)


NESTED: dict[str, Any] = {
    "array<int>": ["int"],
    "map<string,double>": ("double",),
    "struct<x:int,Y:date>": {"x": "int", "Y": "date"},
    "array<struct<x:decimal(5,2),t:array<float>>>": ["struct<x:decimal(5,2),t:array<float>>"],
    "struct<x:decimal(5,2),t:array<float>>": {"x": "decimal(5,2)", "t": "array<float>"},
    "array<float>": ["float"],
}
"""What nested types are made of: a list of its elements, a tuple of its values, a dict of its members."""


class Pairs(list[tuple[str, object]]):
    """The members of an object."""


def texts_of(line: bytes) -> dict[str, str]:
    """Return the values of an object as they are written; of several with one name the last."""
    text, read = line.decode(), json.JSONDecoder().raw_decode

    def begin(at: int) -> int:
        while text[at] in " \t\r":
            at += 1
        return at

    found = {}
    at = begin(begin(0) + 1)
    while text[at] != "}":
        name, at = read(text, at)
        at = begin(begin(at) + 1)
        _, end = read(text, at)
        found[name], at = text[at:end], begin(end)
        at = begin(at + 1) if text[at] == "," else at
    return found


def has_extra(value: object, kind: str) -> bool:
    """Say whether a struct in a value has members that its type has not."""
    match NESTED.get(kind):
        case list() as element if isinstance(value, list) and not isinstance(value, Pairs):
            return any(has_extra(each, element[0]) for each in value)
        case tuple() as element if isinstance(value, Pairs):
            return any(has_extra(each, element[0]) for _, each in value)
        case dict() as members if isinstance(value, Pairs):
            return any(name not in members or has_extra(each, members[name]) for name, each in value)
    return False


def members_of(line: bytes, columns: Mapping[str, str]) -> list[tuple[str, object]] | None:
    """Return the members of an object; None if the line is none."""

    def refuse(_: str) -> object:
        raise ValueError

    try:
        value = json.loads(line.decode(), object_pairs_hook=Pairs, parse_float=Decimal, parse_constant=refuse)
        _whole_text(value)
    except (ValueError, RecursionError):
        return None
    names = [name for name, _ in value] if isinstance(value, Pairs) else []
    if not isinstance(value, Pairs) or _depth(value) > DEEPEST:
        return None
    return None if any(names.count(name) > 1 for name in columns) else list(value)


def _whole_text(value: object) -> None:
    """Raise a ValueError for half of a surrogate pair."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list | tuple):
        for each in value:
            _whole_text(each)


def _depth(value: object) -> int:
    """Count how deep lists lie in each other; a pair of an object is a tuple, and no level of its own."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list)]:
        depth += 1
        level = [inner[1] if isinstance(inner, tuple) else inner for each in level for inner in each]
    return depth


def typed(value: object, kind: str) -> object:
    """Return a value of JSON as one of a column; None if it is none."""
    if kind in ("int", "bigint"):
        limit = 2**31 if kind == "int" else 2**63
        is_one = isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        return value if is_one else None
    if kind in ("float", "double"):
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            return None
        return _single(value) if kind == "float" else _double(value)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind in NESTED:
        try:
            return _nested(value, kind)
        except ValueError:
            return None
    if kind.startswith("decimal"):
        return _decimal(value, *map(int, kind[8:-1].split(",")))
    if not isinstance(value, str):
        return None
    if kind == "date":
        return _day(value)
    return _moment(value) if kind == "timestamp" else value


def _nested(value: object, kind: str) -> object:
    """Return a value whose parts all are of their types; a ValueError if one is not."""
    if value is None:
        return None
    names = [name for name, _ in value] if isinstance(value, Pairs) else []
    if len(set(names)) < len(names):
        raise ValueError
    match NESTED.get(kind):
        case list() as element if isinstance(value, list) and not isinstance(value, Pairs):
            return [_nested(each, element[0]) for each in value]
        case tuple() as element if isinstance(value, Pairs):
            return [(name, _nested(each, element[0])) for name, each in value]
        case dict() as members if isinstance(value, Pairs):
            return {name: _nested(dict(value).get(name), each) for name, each in members.items()}
        case None:
            part = typed(value, kind)
            if part is not None:
                return part
    raise ValueError


def _decimal(value: object, precision: int, scale: int) -> Decimal | None:
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    if isinstance(value, str) and re.fullmatch(number, value):
        value = Decimal(value)
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return None
    unscaled = Fraction(value) * 10**scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**precision:
        return None
    digits = tuple(int(digit) for digit in str(abs(unscaled.numerator)))
    return Decimal((unscaled < 0, digits, -scale))


def exact(values: Iterable[object]) -> tuple[object, ...]:
    """Return values that are equal only if they are the same: 0.0 is not -0.0 here, and 1 not 1.0."""
    return tuple(
        repr(value) if isinstance(value, float | int | Decimal | list | dict) else value for value in values
    )


def _double(value: int | Decimal) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if number in (float("inf"), float("-inf")) else number


def _single(value: int | Decimal) -> float | None:
    """Return the nearest number of 32 bits, the even one of two; found among the neighbours of a guess."""
    size = abs(Fraction(value))
    if size >= 2**128 - 2**103:
        return None
    guess = struct.unpack("<i", struct.pack("<f", min(float(size), _GREATEST)))[0]
    near = (bits for bits in (guess - 1, guess, guess + 1) if 0 <= bits <= _GREATEST_BITS)
    bits = min(near, key=lambda each: (abs(Fraction(_of_bits(each)) - size), each % 2))
    return -_of_bits(bits) if str(value).startswith("-") else _of_bits(bits)


_GREATEST = float(2**128 - 2**104)
_GREATEST_BITS = 0x7F7FFFFF


def _of_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


def _day(text: str) -> date | None:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is None:
        return None
    try:
        return date(*map(int, text.split("-")))
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    *parts, fraction, sign, hours, minutes = found.groups()
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        return None
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        local = datetime(*map(int, parts), tzinfo=UTC)  # type: ignore[misc,arg-type]
        return local + timedelta(microseconds=int(((fraction or "") + "000000")[:6])) - ahead
    except (ValueError, OverflowError):
        return None
