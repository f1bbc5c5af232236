"""What an HTTP API can be told: options of the source, and the text of a query. Secrets stay out of both."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import msgspec

from sealbook.errors import ConfigError, QuotaScope
from sealbook.extract.sources.http_json_paging import Paging
from sealbook.extract.sources.records import Way
from sealbook.extract.sources.templates import Template

_LOCAL = ("localhost", "127.0.0.1", "::1")
_SCHEMES = ("http", "https")
_NOT_IN_A_HEADER = "a header is printable text of one line"

_Status = Annotated[int, msgspec.Meta(ge=100, le=599)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class BaseUrl(str):
    """The URL of an API, to which the paths of queries are added. What follows the host may be a secret."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Read a URL; an error does not quote it."""
        try:
            parts = urlsplit(text)
            origin_of(text)
        except ValueError:
            raise ValueError("expected a URL, https://host/path") from None
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ValueError("expected a URL, https://host/path")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("expected a URL without user, query and fragment: use `headers` and `params`")
        return super().__new__(cls, text.rstrip("/"))

    @property
    def origin(self) -> str:
        """Scheme, host and port: what may be shown, and what is trusted with the credentials."""
        return origin_of(self)

    @property
    def is_readable_on_the_way(self) -> bool:
        """Whether what is sent there can be read by whoever lies between."""
        parts = urlsplit(self)
        return parts.scheme == "http" and parts.hostname not in _LOCAL


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, as far as it has them; ValueError if it is none."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


class FromEnvironment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is read where rows are fetched, and is nowhere else."""

    env: str
    """The name of the environment variable."""
    prefix: str = ""
    """What comes before it: `"Bearer "`."""


Value = str | FromEnvironment


def value_of(name: str, value: Value) -> str:
    """Return the text of a header or parameter; ConfigError if its variable is not set."""
    if isinstance(value, str):
        return value
    found = os.environ.get(value.env)
    if not found:
        raise ConfigError(
            f"the environment variable {value.env}, for {name}, is not set",
            remedy=f"Set {value.env} where rows are fetched; for executors of a cluster by"
            f" `spark.config: {{spark.executorEnv.{value.env}: …}}`.",
        )
    return value.prefix + found


def header_of(name: str, value: Value) -> str:
    """Return the text of a header; what could not be sent is refused without being quoted."""
    text = value_of(f"header {name}", value)
    if not (text.isascii() and text.isprintable()) or not (name.isascii() and name.isprintable()):
        raise ConfigError(f"the value of header {name!r} cannot be sent: {_NOT_IN_A_HEADER}")
    return text


class Statuses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What status codes mean, where that is not the usual."""

    transient: tuple[_Status, ...] = ()
    quota: tuple[_Status, ...] = ()
    permanent: tuple[_Status, ...] = ()
    empty: tuple[_Status, ...] = ()
    """There are no rows, and that is no failure."""


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The headers by which the API says how much may be asked."""

    retry_after: str = "Retry-After"
    remaining: str = "X-RateLimit-Remaining"
    reset: str = "X-RateLimit-Reset"
    """When there is more: seconds from now, or since 1970."""


class HttpJsonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an HTTP API can be told."""

    url: BaseUrl
    """To which the path of each query is added."""
    headers: dict[str, Value] = {}
    """Sent with every request."""
    params: dict[str, Value] = {}
    """Parameters of every request."""
    paging: Paging | None = None
    """How pages follow each other, for queries that say nothing of it; without any, there is one page."""
    records: Way | None = None
    """Where the records of a page are, for queries that say nothing of it; without it, the page is a list."""
    statuses: Statuses = Statuses()
    rate_limit: RateLimit = RateLimit()
    quota_scope: QuotaScope = QuotaScope.SOURCE
    """Who waits when a quota is used up: the account, or the whole source."""
    longest_wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 60.0
    """How long a fetch waits between two pages when the API asks for it; else it starts again later."""
    pause_seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 0.0
    """The pause before each page but the first."""
    timeout_seconds: _Seconds = 60.0
    """How long one page may take."""
    page_megabytes: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    """The most that one page may have, unpacked."""
    most_pages: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """The most pages that a partition may have."""
    origins: tuple[BaseUrl, ...] = ()
    """Further hosts to which links and redirections may lead, and which get the headers, too."""
    allow_http: bool = False
    """Whether a host that is not this machine may be asked without encryption."""
    probe: str | None = None
    """A path that `sealbook doctor` asks for, to see that the credentials are taken."""

    def __repr__(self) -> str:
        return f"HttpJsonOptions({self.url.origin!r})"  # the rest may hold secrets


class Method(StrEnum):
    """How it is asked."""

    GET = "GET"
    POST = "POST"


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a query: what is asked for."""

    path: Template
    """Added to the URL of the source."""
    params: dict[str, Template] = {}
    method: Method = Method.GET
    body: dict[str, Any] | None = None
    """What a POST sends as JSON; every text in it is a template."""
    records: Way | None = None
    columns: dict[str, Way] = {}
    """Columns, each with the way to it in a record; without any, a record is a row as it is."""
    paging: Paging | None = None

    def __post_init__(self) -> None:
        if self.body is not None and self.method is not Method.POST:
            raise ValueError("a body is sent by `method: POST` alone")
        if not self.path.startswith("/"):
            raise ValueError("a path begins with /")
