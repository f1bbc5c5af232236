"""The columns of a read: those of all contracts of a query, reconciled into one table (R-WH-6, R-CON-6).

They follow from the query alone: which partitions are published, or asked for, changes nothing about them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from sealbook.errors import ConfigError, InvalidInput, Irreconcilable
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import RESERVED_COLUMNS, Contract, Query
from sealbook.model.widening import common_type
from sealbook.rows.types import arrow_type

Schema = dict[str, ColumnType]
"""Columns by name, in their order. All may be null: a version that lacks a column has no value for it."""

OwnNames = Mapping[str, Mapping[str, str]]
"""By version, what the columns of a read are called there, if not the same."""

KEY_TYPES: Schema = {
    name: ColumnType.DATE if name == "logical_date" else ColumnType.STRING for name in RESERVED_COLUMNS
}
"""The columns that every reader adds, in front of those of the contract."""


LINEAGE_TYPES: Schema = {
    "run_id": ColumnType.STRING,
    "loaded_at": ColumnType.TIMESTAMP,
    "behind": ColumnType.BOOLEAN,
}
"""What readers add on request: which run a row is of, when it was loaded, whether a newer one is accepted."""


def all_columns(query: Query) -> dict[str, ColumnType | None]:
    """Return the key columns and every column that any version of a query has, each as wide as it must be.

    They come in the order of the present version, then those that only others have. None is the type of a
    column that no one type can hold.
    """
    return {name: common_type(types.values()) for name, types in _declared(query).items()}


def reconcilable(query: Query) -> Schema:
    """Return the columns of a query but for those that no one type can hold."""
    return {name: each for name, each in all_columns(query).items() if each is not None}


def reconcile(query: Query, names: Iterable[str] | None = None) -> Schema:
    """Return all columns of a query, or those of these names; Irreconcilable if no one type can hold one."""
    known = all_columns(query)
    schema = {}
    for name in known if names is None else _checked(query, names, known):
        column_type = known[name]
        if column_type is None:
            raise irreconcilable(query, name)
        schema[name] = column_type
    return schema


def with_lineage(query: Query, schema: Schema) -> Schema:
    """Return a schema with the columns of lineage besides; InvalidInput if the query has one of that name."""
    taken = sorted(set(all_columns(query)) & (LINEAGE_TYPES.keys() - KEY_TYPES.keys()))
    if taken:
        raise InvalidInput(
            f"{query.name} has a column {taken[0]} of its own, so there is no telling it from lineage",
            field="lineage",
            remedy=f"Read without lineage; `sealbook warehouse records` has what is {taken[0]}.",
        )
    return {**schema, **LINEAGE_TYPES}


def irreconcilable(query: Query, column: str) -> Irreconcilable:
    """Return the error that names a column whose types have no common one, and where it is of which."""
    said = ", ".join(
        f"{each} in schema_version {version}" for version, each in _declared(query)[column].items()
    )
    return Irreconcilable(
        f"column {column} of {query.name} cannot be read: it is {said}",
        remedy="Ask for other columns, by name; or give the column another name where it is of another type.",
    )


def contracts_of(query: Query, versions: Collection[str]) -> list[Contract]:
    """Return the contracts of a query, that of its present schema_version first.

    A version of these, which are published, that the configuration has no contract for is a ConfigError.
    """
    unknown = sorted(set(versions) - query.contracts.keys())
    if unknown:
        raise ConfigError(
            f"{query.source}/{query.name} has published partitions of schema_version {', '.join(unknown)},"
            " for which there is no contract",
            remedy="Put the contract back into the configuration, or read other partitions.",
        )
    return [query.contracts[version] for version in dict.fromkeys([query.schema_version, *query.contracts])]


def _declared(query: Query) -> dict[str, dict[str, ColumnType]]:
    """Return the type that each column has in each version."""
    declared = {name: {"": column_type} for name, column_type in KEY_TYPES.items()}
    names = query.names_in_reads
    for contract in contracts_of(query, ()):
        own = names.get(contract.schema_version, {})
        for column in contract.columns:
            shown = own.get(column.name, column.name)
            declared.setdefault(shown, {})[contract.schema_version] = column.type
    return declared


def own_names(query: Query) -> OwnNames:
    """Return for each version that has other names for columns of a read what it calls them."""
    return {
        version: {shown: own for own, shown in each.items()} for version, each in query.names_in_reads.items()
    }


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema in Arrow."""
    return pa.schema([(name, arrow_type(column_type)) for name, column_type in schema.items()])


def _checked(query: Query, names: Iterable[str], known: Collection[str]) -> list[str]:
    if isinstance(names, str):
        raise InvalidInput.of("columns", names, "a list of names")
    wanted = list(names)
    for name in wanted:
        if name not in known:
            now = next((own[name] for own in query.names_in_reads.values() if name in own), None)
            raise InvalidInput.of("column", name, now or f"one of {', '.join(known)}")
    if not wanted or len(set(wanted)) < len(wanted):
        raise InvalidInput.of("columns", wanted, "at least one name, and each once")
    return wanted
