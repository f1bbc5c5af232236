"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import JSON, Dialect, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import TypeEngine

from sealbook.errors import InvalidInput

# RunId is a str, but not one that msgspec knows by its type.
_encoder = msgspec.json.Encoder(enc_hook=str)


class UtcTimestamp(TypeDecorator[datetime]):
    """A moment in UTC that comes back aware; on SQLite, text whose order is time order."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Take the database's own type where it has one."""
        kind = TIMESTAMP(timezone=True) if dialect.name == "postgresql" else Text()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Store UTC, whatever zone the caller had."""
        if value is None or dialect.name == "postgresql":
            return None if value is None else in_utc(value)
        return utc_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return an aware time in UTC."""
        if value is None:
            return None
        moment: datetime = value if dialect.name == "postgresql" else datetime.fromisoformat(value)
        return moment.astimezone(UTC)


def in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC; a naive time is refused, for it names no moment."""
    if moment.tzinfo is None:
        raise InvalidInput.of("time", moment, "a time with its zone")
    return moment.astimezone(UTC)


def utc_text(moment: datetime) -> str:
    """Return the text form that both databases read, always with microseconds."""
    return in_utc(moment).isoformat(timespec="microseconds")


def json_text(value: object) -> str:
    """Encode for a JSON column or parameter; dataclasses become objects."""
    return _encoder.encode(value).decode()


# Byte order on both databases, so that key order and run order are those of Python.
Name = Text().with_variant(Text(collation="C"), "postgresql")
JsonDocument = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
