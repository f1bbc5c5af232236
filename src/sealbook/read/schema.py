"""The columns of a read: those of one contract, or of several reconciled into one table (R-WH-6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from sealbook.errors import ConfigError, InvalidInput, Irreconcilable
from sealbook.model.contract import RESERVED_COLUMNS, ColumnType, Contract, Query
from sealbook.rows.types import arrow_type

Schema = dict[str, ColumnType]
"""Columns by name, in their order. All may be null: a version that lacks a column has no value for it."""

KEY_TYPES: Schema = {
    name: ColumnType.DATE if name == "logical_date" else ColumnType.STRING for name in RESERVED_COLUMNS
}
"""The columns that every reader adds, in front of those of the contract."""

# A type is wider than those whose every value it holds exactly. A double does not hold every bigint.
_WIDER_THAN = {
    ColumnType.BIGINT: {ColumnType.INT},
    ColumnType.DOUBLE: {ColumnType.INT, ColumnType.FLOAT},
}


def common_type(types: Iterable[ColumnType]) -> ColumnType | None:
    """Return the narrowest type that holds every value of all these types; None if there is none."""
    wanted = set(types)
    if len(wanted) == 1:
        return wanted.pop()
    return next((wide for wide, held in _WIDER_THAN.items() if wanted <= {wide} | held), None)


def reconcile(query_name: str, contracts: Sequence[Contract], names: Iterable[str] | None = None) -> Schema:
    """Return the key columns and every column that any of the contracts has, each as wide as it must be.

    They come in the order of the first contract, then those that only the next has, and so on; or only those
    of these names, as named. A column whose types have no common one is Irreconcilable.
    """
    declared = {name: {"": column_type} for name, column_type in KEY_TYPES.items()}
    for contract in contracts:
        for column in contract.columns:
            declared.setdefault(column.name, {})[contract.schema_version] = column.type
    wanted = list(declared) if names is None else _checked(names, declared)
    return {name: _reconciled(query_name, name, declared[name]) for name in wanted}


def contracts_of(query: Query, versions: Collection[str]) -> list[Contract]:
    """Return the contracts of schema_versions, the query's present one first; of no version, that one alone.

    A version that the configuration has no contract for is a ConfigError.
    """
    unknown = sorted(set(versions) - query.contracts.keys())
    if unknown:
        raise ConfigError(
            f"{query.source}/{query.name} has published partitions of schema_version {', '.join(unknown)},"
            " for which there is no contract",
            remedy="Put the contract back into the configuration, or read other partitions.",
        )
    in_order = dict.fromkeys([query.schema_version, *query.contracts])
    wanted = versions or [query.schema_version]
    return [query.contracts[version] for version in in_order if version in wanted]


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema in Arrow."""
    return pa.schema([(name, arrow_type(column_type)) for name, column_type in schema.items()])


def _checked(names: Iterable[str], known: Collection[str]) -> list[str]:
    if isinstance(names, str):
        raise InvalidInput.of("columns", names, "a list of names")
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise InvalidInput.of("column", name, f"one of {', '.join(known)}")
    if not wanted or len(set(wanted)) < len(wanted):
        raise InvalidInput.of("columns", wanted, "at least one name, and each once")
    return wanted


def _reconciled(query_name: str, column: str, types: dict[str, ColumnType]) -> ColumnType:
    common = common_type(types.values())
    if common is None:
        said = ", ".join(f"{each} in schema_version {version}" for version, each in types.items())
        raise Irreconcilable(
            f"column {column} of {query_name} cannot be read over several versions: it is {said}",
            remedy="Read the versions apart, by dates or customers; or leave the column out, by `columns`;"
            " or load the older partitions again, under the newer version.",
        )
    return common
