"""Where the parts of a book are kept: paths relative to its file, made absolute, or URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sealbook.config.documents import Place
from sealbook.errors import shown_url

_POSTGRESQL = re.compile(
    r"(?:[^@]*@)?"  # user and password
    r"(?:\[[0-9a-f:]+\]|[^/?:@\s]*)(?::[0-9]{1,5})?"  # host and port
    r"(?:/[^/?\s]+(?:\?.*)?|/?\?.*\b(?:dbname|service)=.+)"  # database and options
)
_OBJECT_STORES = ("s3", "gs", "az")
_ALMOST_A_URL = re.compile(rf"(?:{'|'.join(_OBJECT_STORES)}):|[a-z0-9]{{2,}}:/", re.IGNORECASE)


def ledger_url(text: str, root: Path, place: Place) -> str:
    """Check the URL of a ledger; a relative SQLite path is relative to the root."""
    remedy = "Use sqlite:///path/to/book.db or postgresql://user:password@host/database."
    kind, separator, rest = text.partition("://")
    if not separator:
        raise place.error("the value is not a URL", remedy=remedy)
    if kind == "sqlite":
        path = rest.removeprefix("/")
        if path == rest or path.endswith("/") or path in ("", ":memory:") or "?" in path or "\0" in path:
            raise place.error("the SQLite URL names no file after three slashes", remedy=remedy)
        return f"sqlite:///{root / path}"
    if kind not in ("postgresql", "postgresql+psycopg"):
        raise place.error(f"ledgers of kind {kind!r} are not supported", remedy=remedy)
    if _POSTGRESQL.fullmatch(rest) is None:
        # The value itself stays out of the message: it may hold a password.
        raise place.error("the PostgreSQL URL has no host, port and database that can be read", remedy=remedy)
    return text


def storage_url(text: str, root: Path, place: Place) -> str:
    """Check the place of raw partitions or artifacts: a folder, relative to the root, or a bucket's URL."""
    remedy = f"Use a folder, or a URL of kind {', '.join(f'{kind}://' for kind in _OBJECT_STORES)}."
    if not text.strip() or "\0" in text:
        raise place.error("the value names no folder", remedy=remedy)
    kind, separator, rest = text.partition("://")
    if not separator:
        if _ALMOST_A_URL.match(text):
            raise place.error(
                f"{shown_url(text)!r} is neither a folder nor a URL, which has two slashes", remedy=remedy
            )
        return str(root / text)
    if kind not in _OBJECT_STORES:
        raise place.error(f"places of kind {kind!r} are not supported", remedy=remedy)
    if not rest.split("/")[0]:
        raise place.error("the URL names no bucket", remedy=remedy)
    return text.rstrip("/")


def check_http(url: str | None, headers: Mapping[str, str], place: Place) -> None:
    """Refuse a `url` to which nothing can be sent, if there is one, and `headers` that cannot be."""
    if url is not None:
        # What follows the host may hold a secret: it is not shown.
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise (place / "url").error("expected an http:// or https:// URL with a host")
    for name, value in headers.items():
        if not name.isascii() or not name.isprintable() or ":" in name or not value.isprintable():
            raise (place / "headers" / name).error("this cannot be a header")
