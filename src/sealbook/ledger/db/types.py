"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import JSON, BigInteger, Dialect, LargeBinary, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import TypeEngine

from sealbook.model import RunId, Status
from sealbook.model.wire import as_utc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# RunId is a str, but not one that msgspec knows by its type.
_encoder = msgspec.json.Encoder(enc_hook=str)


class UtcTimestamp(TypeDecorator[datetime]):
    """A moment in UTC that comes back aware; on SQLite, the number of microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Take the database's own type where it has one."""
        return TIMESTAMP(timezone=True) if dialect.name == "postgresql" else BigInteger()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Store UTC, whatever zone the caller had."""
        if value is None or dialect.name == "postgresql":
            return None if value is None else as_utc("time", value)
        return microseconds(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:  # noqa: ARG002
        """Return aware times in UTC."""
        return _from_timestamp if dialect.name == "postgresql" else _from_microseconds


class StatusName(TypeDecorator[Status]):
    """A status, by its name."""

    impl = Text
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Status]:  # noqa: ARG002
        """Return the member of that name."""
        return _STATUS.__getitem__


class RunIdText(TypeDecorator[RunId]):
    """A run, by its id; its order is time order on both databases."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Compare bytes, whatever the database's collation."""
        return Text(collation="C" if dialect.name == "postgresql" else None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], RunId | None]:  # noqa: ARG002
        """Return a RunId."""
        return _run_id


class Sha256(TypeDecorator[str]):
    """A sha256 in lower-case hex, which the database has as 32 bytes."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """Store bytes."""
        return None if value is None else bytes.fromhex(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return hex."""
        return None if value is None else value.hex()


class TextLines(TypeDecorator[tuple[str, ...]]):
    """Several texts, one a line."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Store a line for each."""
        return lines_text(value)

    def result_processor(
        self,
        dialect: Dialect,  # noqa: ARG002
        coltype: object,  # noqa: ARG002
    ) -> Callable[[Any], tuple[str, ...] | None]:
        """Return the lines."""
        return _lines


# These run for every row that is read: plain functions, as near to C as can be.
_STATUS = {status.value: status for status in Status}


@lru_cache(maxsize=1_000)
def _run_id(text: str | None) -> RunId | None:
    return None if text is None else RunId(text)  # many rows share a run: it is checked once


def _lines(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.split("\n"))


def lines_text(lines: tuple[str, ...] | None) -> str | None:
    """Return the text form of several texts."""
    return None if lines is None else "\n".join(lines)


def _from_timestamp(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


@lru_cache(maxsize=1_000)  # what was written in one call has one time
def _from_microseconds(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


@lru_cache(maxsize=1_000)  # what is written in one call has one time
def microseconds(moment: datetime) -> int:
    """Return a moment as SQLite stores it."""
    return (as_utc("time", moment) - _EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=1_000)  # thousands of rows are of a few hundred days
def day_text(day: date) -> str:
    """Return the text form of a day."""
    return day.isoformat()


def json_text(value: object) -> str:
    """Encode for a JSON column or parameter; dataclasses become objects."""
    return _encoder.encode(value).decode()


# Byte order on both databases, so that key order and run order are those of Python.
Name = Text().with_variant(Text(collation="C"), "postgresql")
JsonDocument = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
