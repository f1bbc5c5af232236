"""Contracts and payloads of all kinds, for the reference and for Sealbook alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tests.support.reference import ContractModel, RuleModel

COLUMNS = ("a", "b", "c", "d", "e")
KINDS = (
    "int", "bigint", "float", "double", "string", "boolean", "date", "timestamp", "decimal(5,2)", "json",
    "array<int>", "map<string,double>", "struct<x:int,Y:date>",
    "array<struct<x:decimal(5,2),t:array<float>>>",
)  # fmt: skip
NO_KEY = ("json", "array", "map", "struct")

FITTING: dict[str, list[bytes]] = {
    "int": b"0 1 -1 7 -0 2147483647 -2147483648".split(),
    "bigint": b"0 5 -5 2147483648 9223372036854775807 -9223372036854775808".split(),
    "float": b"0.1 -0.0 0 3 16777217 1e38 0e999 1e-50 340282356779733661637539395458142568447.9".split(),
    "double": b"0.5 -0.0 0 1e308 0e999 -0e999 1e-400 12345678901234567890 0.1".split(),
    "string": [
        b'"a"', b'""', b'"\xc3\xa9\xf0\x9f\x98\x80"', b'"\\u0000"', *[b'"2026-01-01"'] * 4, b'"}\\n{"',
    ],
    "boolean": [b"true", b"false"],
    "date": [*[b'"2026-01-01"'] * 4, b'"2025-12-31"', b'"9999-12-31"', b'"0001-01-01"'],
    "timestamp": [
        b'"2026-01-01T06:00:00.5+02:00"', b'"2026-12-31 23:59:59"', b'"2026-01-01t00:00:00z"',
        b'"2026-01-01T00:00:00.123456789Z"', b'"1969-12-31T23:59:59.9999999-23:59"',
    ],
    "decimal(5,2)": b'1 -1.5 1.500 "1.5" 999.99 -999.99 0e999 1e2 "+.5" "7." -0.0 0.10 0.00000'.split(),
    "json": [
        b"1", b'"a"', b"[1, {\"a\": null}]", b'{"a":1,"a":2}', b"{}", b"1e400", b"true", b'"\\u00e9"',
        b'{"b":"\\ud83d\\ude00"}', b'[ "}\\n{" ]', b'"\\/"', b"0e999",
    ],
    "array<int>": [b"[]", b"[1, null,-7]", b"[2147483647]", b"[ 1 ]"],
    "map<string,double>": [
        b"{}", b'{"a": 1, "b":null}', b'{"":0.1,"\\u0061":-0.0}', b'{"e":0e999,"a":1e-400,"b":1e308}',
    ],
    "struct<x:int,Y:date>": [
        b"{}", b'{"x":1}', b'{"Y":"2026-01-01","x":null}', b'{"x":2, "Y":"9999-12-31"}', b'{"\\u0078":3}',
    ],
    "array<struct<x:decimal(5,2),t:array<float>>>": [
        b"[]", b"[null]", b'[{"x":1.5,"t":[0.1,16777217,1e38]},{"x":"999.990"}]', b'[{"t":null},{"t":[]}]',
        b'[{"t":[1.000000059604644775390625,1.00000005960464477539062500000000001,1e-46]}]',
    ],
}  # fmt: skip
ODD_NESTED = [
    b"[1.5]", b'["1"]', b"[2147483648]", b'{"a":"x"}', b'{"a":1e309}', b'{"a":1,"a":1}', b'{"x":1,"z":2}',
    b"[{}]",
    b'{"Y":"2026-02-30"}', b'{"x":{}}', b'[{"x":1.555}]', b'[{"x":1,"q":0}]', b'[{"t":[1e39]}]',
    b'[{"t":[{}]}]',
    b'{"x":"\\ud800"}', b'["\\udc00"]', b'{"x":1e999}', b'{"X":1}', b"[[1]]", b"[1,]", b'{"x":NaN}', b"[01]",
    b'[{"x":1,"x":1}]', b'{"a":{"b":1}}', b"1.555", b"1000", b'"1,5"', b'"1e"', b'"NaN"', b"1e-3",
    b'"1e-9999"',
]  # fmt: skip
ODD = [
    *ODD_NESTED,
    *b"null true 1 1.0 1e2 1e400 0e999 2147483648 9223372036854775808 1e309 NaN -Infinity 01 1.".split(),
    *b'"1" {} [] [1,null] {"x":{"y":[null]}} "2026-02-30" "2026-1-1" "0000-01-01"'.split(),
    b"340282356779733661637539395458142568448",
    b"1" + b"0" * 39, b"-1" + b"0" * 39, b"1" + b"0" * 310, b"[" * 99 + b"]" * 99, b"[" * 100 + b"]" * 100,
    b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"', b'"\t"', b"",
    b'"2026-01-01T00:00:00+02:99"', b'"2026-01-01T00:00:00+24:00"', b'"2016-12-31T23:59:60Z"',
    b'"0000-01-01T00:00:00Z"', b'"0001-01-01T00:00:00+00:01"', b'"9999-12-31T23:59:59-00:01"',
    b'"2026-01-01T24:00:00Z"', b'"2026-01-01T00:00:00."', b'"2026-01-01T00:00:00+0200"',
]  # fmt: skip
LINES = [
    b"", b" \t", b"null", b"[]", b"1", b'"a"', b"{}", b"{", b"{}{}", b'{} {"a":1}', b"\xef\xbb\xbf{}",
    b"\xff",
    b'{"a":1,"a":1}', b'{"x":1,"x":2}', b'{"\\u0061":null}', b'{"A":1}', b'{"":0}', b'{"a":}', b'\t{"x":NaN}',
    b'{"x":0e999}', b'{"x":1e400}', b'{"x":"\\udc00"}',
]  # fmt: skip


@dataclass(frozen=True)
class Payload:
    """What a run holds, and what is done to it besides."""

    data: bytes
    version: str
    miscounted: bool
    tampered: str | None


Holds = Callable[[Any], bool | None]


def _fitting(value: int, kind: str) -> int | None:
    """Return a whole number, or null where its type does not hold it."""
    limit = 2**31 if kind == "int" else 2**63
    return value if -limit <= value < limit else None


def _and(value: Any, then: Callable[[Any], Any]) -> Any:
    return None if value is None else then(value)


def _rules_of(name: str, kind: str) -> dict[str, Holds]:
    """Return rules about a column: their SQL, and what it means for a value that may be null."""
    rules: dict[str, Holds] = {f"`{name}` is not null": lambda value: value is not None}
    match kind:
        case "int" | "bigint":
            rules |= {
                f"{name} + {name} <= 1000": lambda value: _and(
                    _and(value, lambda one: _fitting(2 * one, kind)), lambda total: total <= 1000
                ),
                f"coalesce({name} * {name}, 0) <= 49": lambda value: (
                    (_and(value, lambda one: _fitting(one * one, kind)) or 0) <= 49
                ),
                f"-{name} < 8": lambda value: _and(
                    _and(value, lambda one: _fitting(-one, kind)), lambda negative: negative < 8
                ),
                f"cast({name} as int) >= 0": lambda value: _and(
                    _and(value, lambda one: _fitting(one, "int")), lambda narrow: narrow >= 0
                ),
                f"10 / {name} > 1": lambda value: _and(value or None, lambda one: 10 / one > 1),
            }
        case "float" | "double":
            rules[f"{name} >= 0"] = lambda value: _and(value, lambda one: one >= 0)
        case "string":
            rules[f"length({name}) <= 2"] = lambda value: _and(value, lambda one: len(one) <= 2)
        case "boolean":
            rules[f"not {name}"] = lambda value: _and(value, lambda one: not one)
        case "date":
            rules[f"{name} >= date'2026-01-01'"] = lambda value: _and(
                value, lambda one: one >= date(2026, 1, 1)
            )
        case "timestamp":
            rules[f"{name} < timestamp'2026-06-01 00:00:00'"] = lambda value: _and(
                value, lambda one: one < datetime(2026, 6, 1, tzinfo=UTC)
            )
    return rules


def _rules(types: dict[str, str]) -> st.SearchStrategy[RuleModel]:
    known = [
        (sql, name, holds) for name, kind in types.items() for sql, holds in _rules_of(name, kind).items()
    ]
    shares = st.sampled_from([Fraction(1, 2), Fraction(1, 4), Fraction(3, 8), Fraction(0), Fraction(1)])
    return st.builds(
        lambda rule, share, count: RuleModel(rule[0], rule[1], rule[2], share, count),
        st.sampled_from(known),
        shares,
        st.integers(0, 2),
    )


def _one_in(draw: st.DrawFn, many: int) -> bool:
    return draw(st.integers(1, many)) == many  # Hypothesis likes small numbers best


@st.composite
def contracts(draw: st.DrawFn) -> ContractModel:
    """Draw a contract."""
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
    types = {name: draw(st.sampled_from(KINDS)) for name in names}
    keys = [name for name in names if not types[name].startswith(NO_KEY)]
    dates = [name for name, kind in types.items() if kind in ("string", "date")]
    return ContractModel(
        types=types,
        required=frozenset(names[:1] if _one_in(draw, 2) else ()),
        key=tuple(keys[: draw(st.integers(0, 2))] if draw(st.booleans()) else ()),
        date_column=draw(st.sampled_from(dates)) if dates and _one_in(draw, 4) else None,
        rules=tuple(draw(st.lists(_rules(types), max_size=3))),
        allow_empty=draw(st.booleans()),
        strict=_one_in(draw, 3),
        least=2 if _one_in(draw, 4) else None,
        least_ratio=Fraction(11, 20) if _one_in(draw, 2) else None,
    )


@st.composite
def payloads(draw: st.DrawFn, versions: dict[str, ContractModel]) -> Payload:
    """Draw a payload of one of several contracts: many are good, some in part, some not at all."""
    version = draw(st.sampled_from(sorted(versions)))
    types = versions[version].types
    how = draw(st.sampled_from(["good", "odd values", "odd lines", "good", "odd values"]))
    lines = []
    for _ in range(0 if _one_in(draw, 12) else draw(st.integers(1, 8))):
        members = []
        for name, kind in types.items():
            if not _one_in(draw, 25):
                pool = ODD if how == "odd values" and _one_in(draw, 5) else FITTING[kind]
                members.append(b'"%s":%s' % (name.encode(), draw(st.sampled_from(pool))))
        if how == "odd values" and _one_in(draw, 5):
            members.append(b'"more":' + draw(st.sampled_from(ODD)))
        line = b"{" + b", ".join(members) + b"}"
        lines.append(draw(st.sampled_from(LINES)) if how == "odd lines" and draw(st.booleans()) else line)
    end = b"\r\n" if _one_in(draw, 4) else b"\n"
    data = b"".join(line + end for line in lines)
    return Payload(
        data.removesuffix(end) if lines and lines[-1] and _one_in(draw, 4) else data,
        version,
        miscounted=_one_in(draw, 15),
        tampered=draw(st.sampled_from(["cut", "changed"])) if _one_in(draw, 15) else None,
    )
