"""Faults that the demo source commits on purpose, each at places that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import sha256
from itertools import islice
from typing import Annotated

import msgspec

from sealbook.errors import ConfigError, Permanent, QuotaExceeded, QuotaScope, SealbookError, Transient
from sealbook.model import PartitionKey

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]
_LineNumbers = tuple[Annotated[int, msgspec.Meta(ge=1)], ...]


class _Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Which partitions a fault strikes: all, but for what `customers`, `queries`, `dates` and `share` narrow.

    `share` is the part of those partitions that is struck, picked by hash: always the same ones. Of each, a
    fault lets the first `skips` fetches pass, then strikes `tries` of them, or all if that is None.
    """

    customers: tuple[str, ...] | None = None
    queries: tuple[str, ...] | None = None
    dates: tuple[date, ...] | None = None
    share: _Share = 1.0
    skips: _Count = 0
    tries: _Count | None = None

    @property
    def counts(self) -> bool:
        """Whether it takes a number of fetches to tell if it strikes."""
        return self.skips > 0 or self.tries is not None

    def strikes_at(self, fetch: int) -> bool:
        """Tell whether this fault strikes a fetch of a partition, by its number from 1."""
        return fetch > self.skips and (self.tries is None or fetch <= self.skips + self.tries)

    def strikes(self, key: PartitionKey, seed: int) -> bool:
        """Tell whether this fault strikes the partition."""
        return (
            (self.customers is None or key.customer_id in self.customers)
            and (self.queries is None or key.query_name in self.queries)
            and (self.dates is None or key.logical_date in self.dates)
            and self._drawn(key, seed) < self.share
        )

    def _drawn(self, key: PartitionKey, seed: int) -> float:
        # The kind takes part, or faults of equal shares would all strike the same partitions.
        digest = sha256(f"{seed}|{self.__struct_config__.tag}|{key}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56


class Malformed(_Fault, frozen=True, tag="malformed"):
    """Lines that break off in the middle, by their numbers from 1; None is every line."""

    lines: _LineNumbers | None = (1,)


class MissingColumn(_Fault, frozen=True, tag="missing_column"):
    """Lines without a column; by default every line."""

    lines: _LineNumbers | None = None
    column: str = "metrics_clicks"


class DuplicateKey(_Fault, frozen=True, tag="duplicate_key"):
    """Lines that repeat the line before them."""

    lines: _LineNumbers | None = (2,)


class WrongDate(_Fault, frozen=True, tag="wrong_date"):
    """Lines of the day before."""

    lines: _LineNumbers | None = (1,)


class Short(_Fault, frozen=True, tag="short"):
    """Far fewer rows than usual: only this part of them, and then a regular end."""

    keep: _Share = 0.1


class Slow(_Fault, frozen=True, tag="slow"):
    """An account that takes its time before the first row."""

    seconds: _Seconds = 1.0


class TransientError(_Fault, frozen=True, tag="transient"):
    """A failure that passes."""

    after_rows: _Count = 0


class QuotaError(_Fault, frozen=True, tag="quota"):
    """A quota that is used up, of the account or the whole source, with the wait that is asked for."""

    after_rows: _Count = 0
    retry_after: _Seconds | None = None
    scope: QuotaScope = QuotaScope.ACCOUNT


class PermanentError(_Fault, frozen=True, tag="permanent"):
    """An account that is disabled."""

    after_rows: _Count = 0


LineFault = Malformed | MissingColumn | DuplicateKey | WrongDate
ErrorFault = TransientError | QuotaError | PermanentError
Fault = LineFault | Short | Slow | ErrorFault


def spoil(fault: LineFault, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Pass lines on with those that the fault names spoilt; a number beyond the last line spoils nothing."""
    chosen = None if fault.lines is None else frozenset(fault.lines)
    previous = b""
    for number, line in enumerate(lines, start=1):
        if chosen is None or number in chosen:
            yield _spoilt(fault, line, previous or line)
        else:
            yield line
        previous = line


def fail(fault: ErrorFault, lines: Iterator[bytes], key: PartitionKey) -> Iterator[bytes]:
    """Pass on the lines before the failure, then fail."""
    yield from islice(lines, fault.after_rows)
    raise _error(fault, key)


def _spoilt(fault: LineFault, line: bytes, previous: bytes) -> bytes:
    match fault:
        case Malformed():
            return line[: len(line) // 2]
        case DuplicateKey():
            return previous
        case MissingColumn(column=column):
            row = msgspec.json.decode(line, type=dict[str, object])
            if column not in row:
                raise ConfigError(f"fault missing_column: the rows have no column {column} to leave out")
            del row[column]
            return msgspec.json.encode(row)
        case WrongDate():
            row = msgspec.json.decode(line, type=dict[str, object])
            day = date.fromisoformat(str(row["segments_date"])) - timedelta(days=1)
            return msgspec.json.encode({**row, "segments_date": day})


def _error(fault: ErrorFault, key: PartitionKey) -> SealbookError:
    match fault:
        case TransientError():
            return Transient(f"{key}: the demo source fails here for a while, as its options ask")
        case QuotaError(scope=scope, retry_after=retry_after):
            return QuotaExceeded(
                f"{key}: the quota of the demo {scope} is used up, as the options ask",
                scope=scope,
                retry_after=retry_after,
            )
        case PermanentError():
            return Permanent(f"{key}: the demo account is disabled, as the options ask")
