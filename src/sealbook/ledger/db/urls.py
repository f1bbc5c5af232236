"""Ledger URLs: which are good, and how they are shown. No message repeats one: it may hold a password."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from sealbook.errors import ConfigError
from sealbook.model.wire import is_storable

_REMEDY = "Use sqlite:///path/to/book.db or postgresql://user:password@host/database."
CONNECT_TIMEOUT = "10"
"""How many seconds PostgreSQL may take to answer, unless the URL says."""

_SHOWN_OPTIONS = ("host", "port", "dbname", "service")


def parse_url(url: str) -> URL:
    """Check a ledger URL and name the driver."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Without the cause: it quotes parts of the URL.
        raise _bad_url("cannot be read") from None
    match parsed.drivername:
        case "sqlite":
            return _sqlite_url(parsed)
        case "postgresql" | "postgresql+psycopg":
            return _postgresql_url(parsed)
    raise _bad_url(f"is of kind {parsed.drivername!r}, which is not supported")


def printable(url: URL) -> str:
    """Return the URL as its user wrote it, without anything secret."""
    options = {name: value for name, value in url.query.items() if name in _SHOWN_OPTIONS}
    shown = url.set(drivername=url.get_backend_name(), query=options)
    return shown.render_as_string(hide_password=True)


def _sqlite_url(url: URL) -> URL:
    if url.host or url.username or url.password or url.port:
        raise _bad_url("has a host where SQLite needs a path: write three slashes")
    if url.query:
        raise _bad_url("has options, and SQLite takes none")
    if not is_storable(url.database or ""):
        raise _bad_url("has a character in its path that no file name can have")
    return url


def _postgresql_url(url: URL) -> URL:
    if not (url.database or url.query.get("dbname") or url.query.get("service")):
        raise _bad_url("names no database")
    if "@" in (url.host or ""):
        raise _bad_url("has more than one @: write %40 for one in the password")
    if url.port is not None and not 0 < url.port < 2**16:
        raise _bad_url(f"has port {url.port}, which does not exist")
    return _checked_by_driver(url.set(drivername="postgresql+psycopg"))


def answers(url: URL) -> bool:
    """Ask whether PostgreSQL is there and takes connections, whatever it thinks of the user and database."""
    from psycopg.pq import PGconn, Ping

    return PGconn.ping(_conninfo(url).encode()) == Ping.OK


def _conninfo(url: URL) -> str:
    from psycopg.conninfo import make_conninfo

    texts, options = url.get_dialect()().create_connect_args(url)
    return make_conninfo(*texts, **{"connect_timeout": CONNECT_TIMEOUT, **options})


def _checked_by_driver(url: URL) -> URL:
    """Refuse options that libpq does not know, before anything is connected."""
    from psycopg import ProgrammingError

    try:
        _conninfo(url)
    except (ArgumentError, ProgrammingError, ValueError) as error:
        raise _bad_url(f"is not one that PostgreSQL's driver takes: {str(error).strip()}") from None
    return url


def _bad_url(what: str) -> ConfigError:
    return ConfigError(f"the ledger URL {what}", remedy=_REMEDY)
