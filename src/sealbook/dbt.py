"""A plugin of dbt-duckdb: what is published, as sources of a dbt project, all of one instant (R-CON-4).

In the profile: `plugins: [{module: sealbook.dbt, alias: sealbook, config: {book: ../my_book}}]`.
`sealbook dbt sources` writes the sources.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt.adapters.duckdb.plugins import BasePlugin

import sealbook
from sealbook.errors import ConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from sealbook.book import BookReader
    from sealbook.book.snapshot import Snapshot
    from sealbook.model.contract import Query

_GIVEN = "__sealbook_freshness"
_FRESHNESS = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("query_name", pa.string()),
        pa.field("partitions", pa.int64()),
        pa.field("newest_day", pa.date32()),
        pa.field("published_at", pa.timestamp("us", tz="UTC")),
    ]
)


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt-duckdb has no types
    """Offers the queries of a book as views. It holds one snapshot for as long as dbt runs."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Take the path of the book."""
        unknown = plugin_config.keys() - {"book", "cut", "strict"}
        if unknown or "book" not in plugin_config:
            problem = f"it has no option {', '.join(sorted(unknown))}" if unknown else "it names no book"
            raise ConfigError(
                f"plugin {self.name} of the dbt profile: {problem}",
                remedy="Its config has `book`, the folder of a sealbook.yaml; `cut` and `strict` may follow.",
            )
        self._config = plugin_config

    # Both are let go of with the process: dbt does not tell its plugins when it is done.
    @cached_property
    def _book(self) -> BookReader:
        return sealbook.open(self._config["book"], read_only=True)

    @cached_property
    def _snapshot(self) -> Snapshot:
        return self._book.snapshot(cut=self._config.get("cut"), strict=bool(self._config.get("strict")))

    def configure_connection(self, conn: DuckDBPyConnection) -> None:
        """Make a view of each query, and the table `sealbook.freshness`, which freshness queries ask.

        All at once, before dbt's threads begin: two of them cannot create the same thing.
        """
        self.configure_cursor(conn)
        rows = [each._asdict() for each in self._snapshot.freshest()]
        conn.register(_GIVEN, pa.Table.from_pylist(rows, _FRESHNESS))
        conn.execute("CREATE SCHEMA IF NOT EXISTS sealbook")
        conn.execute(f"CREATE OR REPLACE TABLE sealbook.freshness AS FROM {_GIVEN}")
        conn.unregister(_GIVEN)
        for registered, query in self._names.items():
            conn.execute(f'CREATE SCHEMA IF NOT EXISTS "{query.source}"')
            conn.execute(f'CREATE OR REPLACE VIEW "{query.source}"."{query.name}" AS FROM "{registered}"')

    def configure_cursor(self, cursor: DuckDBPyConnection) -> None:
        """Let a cursor scan what the views name; nothing is read before a model asks."""
        for registered, query in self._names.items():
            cursor.register(registered, self._snapshot.dataset(query.name, source=query.source))

    @property
    def _names(self) -> dict[str, Query]:
        return {f"__{query.source}__{query.name}": query for query in self._book.queries}
