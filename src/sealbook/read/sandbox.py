"""SQL of people who may read what is published and nothing else: no file, no network, no end of time."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sealbook.errors import Forbidden, InvalidInput, Permanent

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_EXPLAIN = re.compile(r"\s*explain(\s+analyze)?\s", re.IGNORECASE)
_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "repeat"})
"""What may stand in the place of a table: functions that make rows of what they are given."""
_REFUSED = frozenset({"current_setting", "getvariable", "write_log"})
"""Functions that tell of the process, or write to it."""
_BATCH = 2_048


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a question may take, and what it may not see: `column` of any query, or `query.column`."""

    seconds: float = 30
    rows: int = 10_000
    megabytes: int = 512
    masked_columns: frozenset[str] = frozenset()

    @property
    def settings(self) -> dict[str, str | bool | int | float | list[str]]:
        """The settings of DuckDB by which it reaches nothing but what it is handed."""
        return {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "temp_directory": "",
            "memory_limit": f"{self.megabytes}MB",
            "threads": 2,
        }

    def masks(self, query_name: str, columns: Collection[str]) -> frozenset[str]:
        """Return those of a query's columns that may not be seen."""
        return frozenset(each for each in columns if {each, f"{query_name}.{each}"} & self.masked_columns)

    def check(self, connection: duckdb.DuckDBPyConnection, text: str, tables: Collection[str]) -> None:
        """Refuse a question about anything but some tables, by what it says and not by how it is written."""
        question = text[found.end() :] if (found := _EXPLAIN.match(text)) else text
        [(said,)] = connection.execute("SELECT json_serialize_sql(?)", [question]).fetchall()
        told: dict[str, Any] = json.loads(said)
        if told["error"]:
            if told["error_type"] == "not implemented":
                raise Forbidden("only a select is answered here", remedy="`sealbook sql` answers it.")
            raise InvalidInput(str(told["error_message"]), field="SQL", remedy="Ask in the SQL of DuckDB.")
        nodes = list(_nodes(told["statements"]))
        own = {each["key"].lower() for node in nodes for each in _common_tables(node)}
        taken = own & _catalogue(connection) - {*tables}
        if taken:
            raise Forbidden(f"{min(taken)} is a name of DuckDB's own", remedy="Use another one after `with`.")
        for node in nodes:
            _check_node(node, tables, own)

    def fetch(self, relation: duckdb.DuckDBPyRelation) -> tuple[pa.Table, bool]:
        """Return the first rows of an answer, and whether there are more."""
        import pyarrow as pa

        reader = relation.to_arrow_reader(_BATCH)
        batches, count, size = [], 0, 0
        for batch in reader:
            batches.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if size > self.megabytes * 1_000_000 // 4:
                raise Permanent(
                    "the answer is too large to be shown", remedy="Ask for fewer columns or rows."
                )
            if count > self.rows:
                break
        table = pa.Table.from_batches(batches, reader.schema)
        return table.slice(0, self.rows), count > self.rows


def _check_node(node: Mapping[str, Any], tables: Collection[str], own: Collection[str]) -> None:
    match node:
        case {"type": "BASE_TABLE", "table_name": name, "schema_name": schema, "catalog_name": catalog}:
            called = ".".join(filter(None, (catalog, schema, name))).lower()
            is_own = not schema and not catalog and name.lower() in own
            if not is_own and (catalog or called not in tables):
                known = ", ".join(sorted(each for each in tables if "." in each)) or "none that is named"
                raise Forbidden(
                    f"{called} is no published table", remedy=f"Published and named here: {known}."
                )
        case {"type": "TABLE_FUNCTION", "function": {"function_name": name}}:
            if name.lower() not in _FUNCTIONS:
                raise Forbidden(f"{name} cannot be asked here", remedy="Ask of published tables.")
        case {"class": "FUNCTION", "function_name": name} if name.lower() in _REFUSED:
            raise Forbidden(f"{name} cannot be asked here", remedy="Ask of published tables.")


def _catalogue(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return what DuckDB calls its own tables: one that `with` names alike would hide which is meant."""
    rows = connection.execute(
        "SELECT view_name FROM duckdb_views() UNION SELECT table_name FROM duckdb_tables()"
    )
    return {name.lower() for (name,) in rows.fetchall()}


def _common_tables(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tables that a select names for itself (`with`)."""
    found = node.get("cte_map")
    return found["map"] if isinstance(found, dict) else []


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object of a question, however deep it lies."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
