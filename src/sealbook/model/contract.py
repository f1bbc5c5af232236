"""What a query's raw partitions must look like, for each schema_version, and the query itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

from sealbook.errors import InvalidInput
from sealbook.model.column_types import ColumnType
from sealbook.model.freshness import Freshness
from sealbook.model.keys import check_name
from sealbook.model.universe import Upstream
from sealbook.model.verdict import Severity
from sealbook.model.versions import (
    Span,
    Term,
    check_spans,
    names_in_reads,
    spans_of,
    version_on,
    wrong_renames,
)

RESERVED_COLUMNS = ("source", "customer_id", "logical_date", "run_id", "schema_version")
"""Columns that every published table has besides those of its contract."""

_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{0,127}")
_SCHEMA_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,62}")
_MOST_PLACES = 18
_GREATEST_RATIO = 10**_MOST_PLACES


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the payload; a required one is never null or absent."""

    name: str
    type: ColumnType
    required: bool = False
    renamed_from: str | None = None
    """What it is called in another version: reads over both have one column."""

    def __post_init__(self) -> None:
        _check_column("column", self.name)
        if self.renamed_from is not None:
            _check_column(f"column {self.name} renamed_from", self.renamed_from)


@dataclass(frozen=True, slots=True)
class Rule:
    """A business rule: a Spark SQL expression that must hold in each row, but for what is tolerated.

    The rule fails when its violations are more than `max_count` and more than `max_share` of the rows. A
    share is the decimal number that was written: a float stands for the shortest one that gives it.
    """

    name: str
    expression: str
    max_share: Decimal = Decimal(0)
    max_count: int = 0
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        check_name("rule", self.name)
        if not self.expression.strip():
            raise InvalidInput.of(f"rule {self.name} expression", self.expression, "a Spark SQL expression")
        object.__setattr__(self, "max_share", _exact(f"rule {self.name} max_share", self.max_share, 1))
        if self.max_count < 0:
            raise InvalidInput.of(f"rule {self.name} max_count", self.max_count, "a whole number from 0")


@dataclass(frozen=True, slots=True)
class RowCount:
    """Bounds of a partition's row count: absolute, and relative to the mean of its last accepted runs."""

    min: int | None = None
    max: int | None = None
    min_ratio: Decimal | None = None
    max_ratio: Decimal | None = None
    last: int = 5

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            bound = getattr(self, name)
            if bound is not None and bound < 0:
                raise InvalidInput.of(f"row_count {name}", bound, "a whole number from 0")
        for name in ("min_ratio", "max_ratio"):
            ratio = getattr(self, name)
            if ratio is not None:
                object.__setattr__(self, name, _exact(f"row_count {name}", ratio, _GREATEST_RATIO))
        if self.last < 1:
            raise InvalidInput.of("row_count last", self.last, "a whole number from 1")
        for low, high in (("min", "max"), ("min_ratio", "max_ratio")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise InvalidInput(
                    f"row_count {low} {least} is not valid: expected at most {high}, which is {most}",
                    field=f"row_count {low}",
                    value=least,
                )


@dataclass(frozen=True, slots=True)
class Contract:
    """What the partitions of one `(query_name, schema_version)` must hold to be accepted (R-VER-1)."""

    query_name: str
    schema_version: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    date_column: str | None = None
    rules: tuple[Rule, ...] = ()
    allow_empty: bool = False
    strict: bool = False
    row_count: RowCount = RowCount()

    def __post_init__(self) -> None:
        check_name("query_name", self.query_name)
        check_schema_version(self.schema_version)
        if not self.columns:
            raise InvalidInput.of("columns", self.columns, "at least one column")
        names = [column.name for column in self.columns]
        _check_distinct("columns", names)
        _check_distinct("primary_key", self.primary_key)
        _check_distinct("rules", [rule.name for rule in self.rules])
        types = {column.name: column.type for column in self.columns}
        for name in self.primary_key:
            if name not in types:
                raise InvalidInput.of("primary_key", name, f"a column of the contract: {', '.join(names)}")
            if types[name].is_nested:
                raise InvalidInput.of(
                    "primary_key", name, f"a column of one simple value; it is of type {types[name]}"
                )
        dated = (ColumnType.STRING, ColumnType.DATE)
        if self.date_column is not None and types.get(self.date_column) not in dated:
            raise InvalidInput.of(
                "date_column", self.date_column, "a column of the contract, of type string or date"
            )

    @property
    def shape(self) -> tuple[object, ...]:
        """What shapes artifacts: columns and their types, keys, the date column. All else is rules."""
        columns = tuple((column.name, column.type) for column in self.columns)
        return columns, self.primary_key, self.date_column

    @property
    def hash(self) -> str:
        """A stable digest of everything that the contract says."""
        said = asdict(self)
        for column in said["columns"]:
            if column["renamed_from"] is None:  # as hashes have always been
                del column["renamed_from"]
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), default=_in_hash)
        return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Query:
    """A configured query: its text, its present schema_version, and a contract for each version.

    A version holds for the days that `terms` says, with a text of its own where it has one (R-VER-7); those
    that are not among them for none.
    """

    source: str
    name: str
    text: str
    schema_version: str
    contracts: Mapping[str, Contract] = field(repr=False)
    api_version: str | None = None
    freshness: Freshness | None = None
    """When its days are due; None: as the source says."""
    upstreams: tuple[Upstream, ...] = ()
    terms: Mapping[str, Term] = field(default_factory=dict, repr=False)
    file: Path | None = field(default=None, repr=False, compare=False)
    """The catalogue file that says so, for errors that are found later; it makes no other query of it."""

    def __post_init__(self) -> None:
        check_name("source", self.source)
        check_name("query_name", self.name)
        if not self.text.strip():
            raise InvalidInput.of(f"query {self.name} text", self.text, "the text of a query")
        if self.schema_version not in self.contracts:
            raise InvalidInput.of(
                f"query {self.name} schema_version",
                self.schema_version,
                f"one that has a contract: {', '.join(self.contracts) or 'none has'}",
            )
        check_spans(self.name, self.spans, self.schema_version)
        for wrong in wrong_renames(self.contracts):
            raise wrong.error

    @property
    def spans(self) -> tuple[Span, ...]:
        """Which version new extractions are of, from which day on."""
        return spans_of(self.terms, self.schema_version)

    def on(self, day: date) -> Query:
        """Return the query as a day is fetched: with the version that holds then, and its text."""
        if not self.terms:
            return self
        version = version_on(self.spans, day)
        text = self.terms[version].text or self.text
        return replace(self, text=text, schema_version=version, terms={})

    @property
    def names_in_reads(self) -> dict[str, dict[str, str]]:
        """For each version what those of its columns are called in reads that were renamed."""
        versions = sorted(self.contracts, key=lambda each: each != self.schema_version)
        return names_in_reads(self.contracts[each] for each in (versions[0], *reversed(versions[1:])))

    @property
    def hash(self) -> str:
        """The digest of the text, recorded with every extraction (`query_hash`)."""
        return sha256(self.text.encode()).hexdigest()


def _check_column(field_name: str, name: str) -> None:
    if _COLUMN_NAME.fullmatch(name) is None:
        raise InvalidInput.of(field_name, name, "a lower-case letter, then a-z, 0-9 and _")
    if name in RESERVED_COLUMNS:
        raise InvalidInput.of(field_name, name, f"none of {', '.join(RESERVED_COLUMNS)}")


def check_schema_version(value: object) -> None:
    """Refuse a schema_version that could not be part of a path."""
    if not isinstance(value, str) or _SCHEMA_VERSION.fullmatch(value) is None:
        raise InvalidInput.of(
            "schema_version", value, "a letter or digit, then at most 62 letters, digits, dots, _ and -"
        )


def _exact(field_name: str, number: Decimal | float, greatest: int) -> Decimal:
    """Return a number as the decimal that it was written as, with so few digits that sums of it are cheap."""
    written = Decimal(str(number))
    if written.is_finite() and 0 <= written <= greatest:
        exact = written.normalize() if written else Decimal(0)
        if exact == written and -int(exact.as_tuple().exponent) <= _MOST_PLACES:
            return exact
    expected = f"a number from 0 to {greatest} with at most {_MOST_PLACES} decimal places"
    raise InvalidInput(
        f"{field_name} {number} is not valid: expected {expected}", field=field_name, value=number
    )


def _in_hash(number: object) -> object:
    """Return a decimal as hashes have always had it: as a float, where one says the same."""
    if not isinstance(number, Decimal):
        raise TypeError(f"{number!r} is in no contract")
    as_float = float(number)
    return as_float if Decimal(repr(as_float)) == number else str(number)


def _check_distinct(field_name: str, names: list[str] | tuple[str, ...]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput.of(field_name, repeated[0], "each name once")
