"""Ways in which a part file comes not to be what was loaded, on any storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet

from sealbook.book import Book
from sealbook.model import PartitionKey
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.warehouse.encoding import stamp_of, to_parquet
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.store import ArtifactStore
from tests.support.published import CONTRACTS, QUERY, rows_of


class Parts(NamedTuple):
    """What lies in the warehouse: the part of a partition, and that of another."""

    published: Published
    own: bytes
    other: bytes

    @property
    def stamp(self) -> str:
        return stamp_of(self.published, 0)

    def rows(self, count: int) -> pa.Table:
        return rows_of(CONTRACTS[self.published.schema_version], count, 1)

    def uncompressed(self) -> bytes:
        """Write the same rows, and whose they are, by another writer."""
        sink = pa.BufferOutputStream()
        rows = self.rows(10)
        with pyarrow.parquet.ParquetWriter(sink, rows.schema, compression="none") as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"sealbook.part": self.stamp})
        return bytes(sink.getvalue())


@dataclass(frozen=True)
class Damage:
    """What is written in place of a part, and what is said then."""

    write: Callable[[Parts], bytes]
    said: str


SWAPPED, PAGE = "swapped", "a page"
DAMAGES = {
    SWAPPED: Damage(lambda parts: parts.other, "its footer says {other}, not {own}"),
    "of nobody": Damage(lambda parts: to_parquet(parts.rows(10)), "its footer says nothing, not {own}"),
    "other rows": Damage(lambda parts: to_parquet(parts.rows(9), parts.stamp), "it has 9 rows, not 10"),
    "other bytes": Damage(Parts.uncompressed, "bytes, not {bytes}"),
    "truncated": Damage(lambda parts: parts.own[: len(parts.own) // 2], "it cannot be read"),
    "garbage": Damage(lambda _: b"PAR1 no more", "it cannot be read"),
    PAGE: Damage(lambda parts: parts.own[:4] + b"\xff" * 40 + parts.own[44:], "it cannot be read"),
}
"""By their names. The last leaves the footer as it was, so that only who reads the rows finds it."""


def inflict(book: Book, name: str, one: PartitionKey, other: PartitionKey) -> tuple[Published, str]:
    """Damage the artifact of a partition, and with a swap that of another; return it, and what is said."""
    by_key = {each.key: each for each in book.ledger.pointers.published(Selection(queries=QUERY))}
    store = ArtifactStore.open(book.settings.warehouse)
    [path], [other_path] = part_paths(by_key[one]), part_paths(by_key[other])
    own, others = store.get(path) or b"", store.get(other_path) or b""
    damage = DAMAGES[name]
    store.put(path, damage.write(Parts(by_key[one], own, others)))
    if name == SWAPPED:
        store.put(other_path, own)
    published = by_key[one]
    said = damage.said.format(
        own=stamp_of(published, 0), other=stamp_of(by_key[other], 0), bytes=f"{published.bytes:,}"
    )
    return published, said
