"""The names of the checks that every verdict reports, in the order of the evidence."""

from __future__ import annotations

from sealbook.model.sealed_day import DAY_OVER
from sealbook.rows.offending import EXTRA_COLUMNS, JSON, REQUIRED, TYPES

METADATA = "metadata"
PAYLOAD_BYTES = "payload_bytes"
PAYLOAD_SHA256 = "payload_sha256"
RECORD_COUNT = "record_count"
PRIMARY_KEY = "primary_key"
DATE_COLUMN = "date_column"
NOT_EMPTY = "not_empty"
ROW_COUNT = "row_count"

CHECKS = (
    METADATA,
    PAYLOAD_BYTES,
    PAYLOAD_SHA256,
    JSON,
    RECORD_COUNT,
    TYPES,
    REQUIRED,
    EXTRA_COLUMNS,
    PRIMARY_KEY,
    DATE_COLUMN,
    NOT_EMPTY,
    ROW_COUNT,
    DAY_OVER,
)
"""Besides these, each rule of the contract is a check under its own name."""

__all__ = [
    "CHECKS",
    "DATE_COLUMN",
    "DAY_OVER",
    "EXTRA_COLUMNS",
    "JSON",
    "METADATA",
    "NOT_EMPTY",
    "PAYLOAD_BYTES",
    "PAYLOAD_SHA256",
    "PRIMARY_KEY",
    "RECORD_COUNT",
    "REQUIRED",
    "ROW_COUNT",
    "TYPES",
]
