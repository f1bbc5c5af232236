"""Rows as Parquet, the same bytes for the same rows, and the digest of what was written (R-WH-2)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet

from sealbook.model.artifacts import Artifact
from sealbook.model.publication import Published

# All that the bytes depend on is said here, not left to defaults that may change. The Arrow schema is left
# out: each type of a contract has a Parquet type of its own, and small files would be a good part larger.
_WRITER = {
    "version": "2.6",
    "data_page_version": "1.0",
    "data_page_size": 1024 * 1024,
    "write_batch_size": 1024,
    "compression": "zstd",
    "compression_level": 1,
    "write_statistics": True,
    "store_schema": False,
}
_ROWS_A_GROUP = 1024 * 1024


_STAMP = b"sealbook.part"


def to_parquet(rows: pa.Table, stamp: str | None = None) -> bytes:
    """Return rows as a Parquet file. They must be in one piece, which a slice of a parsed block is.

    `stamp` is kept in its footer; the first format had none.
    """
    text = [field.name for field in rows.schema if pa.types.is_string(field.type)]
    sink = pa.BufferOutputStream()
    with pyarrow.parquet.ParquetWriter(sink, rows.schema, use_dictionary=text, **_WRITER) as writer:
        writer.write_table(rows, row_group_size=_ROWS_A_GROUP)
        if stamp is not None:
            # Of the file and not of its schema, whose metadata are left out with it.
            writer.add_key_value_metadata({_STAMP: stamp.encode()})
    return bytes(sink.getvalue())


def stamp_of(artifact: Artifact | Published, number: int) -> str:
    """Return what the footer of a part says: whose rows it holds, and which part of them it is.

    Files that several runs share say the run that they were written for.
    """
    run_id = artifact.run_id if isinstance(artifact, Artifact) else artifact.files_run_id or artifact.run_id
    return f"{artifact.key} {run_id} {artifact.schema_version} {number}"


def read_stamp(footer: pyarrow.parquet.FileMetaData) -> str | None:
    """Return what the footer of a part says; None if it says nothing."""
    found = (footer.metadata or {}).get(_STAMP)
    return None if found is None else found.decode(errors="replace")


def digest_of(parts: Sequence[str]) -> str:
    """Return the digest of an artifact from the sha256 of each of its parts, in order.

    That of a single part is its own; of several, the sha256 of theirs, one a line.
    """
    if len(parts) == 1:
        return parts[0]
    return sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()
