"""What is gathered as JSON, in one way for commands and pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class NamedTupleLike(Protocol):
    """A named tuple: an object to whoever reads JSON."""

    def _asdict(self) -> dict[str, Any]: ...


def plain(record: object) -> object:
    """Return a record as it is encoded: a named tuple as an object, anything else as it is."""
    return record._asdict() if isinstance(record, NamedTupleLike) else record


def encode(value: object) -> bytes:
    """Return a value as JSON."""
    return _encoder()(value)


@cache
def _encoder() -> Callable[[object], bytes]:
    import msgspec

    # A sum of bigints is a decimal in SQL, and a number to whoever asked.
    return msgspec.json.Encoder(enc_hook=_plain_text, decimal_format="number").encode


def _plain_text(value: object) -> str:
    if isinstance(value, str):  # RunId: a text to all but msgspec
        return str(value)
    raise NotImplementedError
