"""How the pages of an HTTP API follow each other: by a link, a cursor, a page's number or an offset."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import msgspec

from sealbook.extract.sources.records import Way

_LINK = re.compile(r"<([^>]*)>([^<]*)")
_NEXT = re.compile(
    r""";\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?=\s*[;,]|\s*$))""", re.IGNORECASE
)

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Size = Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a page; parameters of paging are members of its body, if it has one."""

    url: str
    params: Mapping[str, str]
    always: Mapping[str, str]
    """Those that every request has: a key, for one."""
    body: Mapping[str, object] | None = None

    def having(self, params: Mapping[str, str | int]) -> Asked:
        """Return the request with some parameters as given."""
        if self.body is not None:
            return replace(self, body={**self.body, **params})
        return replace(self, params={**self.params, **{name: str(each) for name, each in params.items()}})

    def value(self, param: str) -> object:
        """Return what a parameter is."""
        return (self.params if self.body is None else self.body)[param]

    @property
    def full_url(self) -> str:
        """The URL with its parameters. It may hold secrets."""
        if not self.params:
            return self.url
        return f"{self.url}{'&' if urlsplit(self.url).query else '?'}{urlencode(self.params)}"


@dataclass(frozen=True, slots=True)
class Page:
    """What came of a request."""

    body: bytes
    link: str | None
    """The header `Link`."""
    records: Sequence[msgspec.Raw]


class ByLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="link"):
    """The next page has a URL: in the header `Link` (RFC 8288), or in the page."""

    path: Way | None = None
    """The way to the URL in the page."""

    def first(self, asked: Asked) -> Asked:
        """Return the request for the first page."""
        return asked

    def after(self, asked: Asked, page: Page) -> Asked | None:
        """Return the request for the page after one; None if there is none."""
        link = _next_link(page.link) if self.path is None else _text(self.path.inside(page.body))
        if not link:
            return None
        url = urljoin(asked.url, link)
        # A link repeats what was asked; what it leaves out, a key for one, goes along.
        there = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
        return replace(
            asked, url=url, params={name: each for name, each in asked.always.items() if name not in there}
        )


class ByCursor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="cursor"):
    """A page says where the next one begins."""

    param: str
    path: Way | None = None
    """The way to the cursor in the page: there is no further page where it is absent, null or empty."""
    record: Way | None = None
    """Or the way to it in the last record of the page."""
    more: Way | None = None
    """The way to a boolean in the page that says whether there is another."""

    def __post_init__(self) -> None:
        if (self.path is None) == (self.record is None):
            raise ValueError("either `path` or `record` says where the cursor is")

    def first(self, asked: Asked) -> Asked:
        """Return the request for the first page."""
        return asked

    def after(self, asked: Asked, page: Page) -> Asked | None:
        """Return the request for the page after one; None if there is none."""
        if self.more is not None and bytes(self.more.inside(page.body) or b"") != b"true":
            return None
        cursor = None
        if self.path is not None:
            cursor = _text(self.path.inside(page.body))
        elif self.record is not None and page.records:
            cursor = _text(self.record.inside(page.records[-1]))
        return asked.having({self.param: cursor}) if cursor else None


class ByPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="page"):
    """Pages are numbered. The last one has fewer records than `size`, or none."""

    param: str = "page"
    first_page: _Count = 1
    size: _Size | None = None
    size_param: str | None = None

    def first(self, asked: Asked) -> Asked:
        """Return the request for the first page."""
        return asked.having({self.param: self.first_page, **_sized(self.size_param, self.size)})

    def after(self, asked: Asked, page: Page) -> Asked | None:
        """Return the request for the page after one; None if there is none."""
        if not page.records or len(page.records) < (self.size or 0):
            return None
        return asked.having({self.param: int(str(asked.value(self.param))) + 1})


class ByOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="offset"):
    """A page begins so many records after the first. The last one has fewer than `size`."""

    size: _Size
    param: str = "offset"
    size_param: str = "limit"

    def first(self, asked: Asked) -> Asked:
        """Return the request for the first page."""
        return asked.having({self.param: 0, **_sized(self.size_param, self.size)})

    def after(self, asked: Asked, page: Page) -> Asked | None:
        """Return the request for the page after one; None if there is none."""
        if len(page.records) < self.size:
            return None
        return asked.having({self.param: int(str(asked.value(self.param))) + len(page.records)})


Paging = ByLink | ByCursor | ByPage | ByOffset


def _sized(param: str | None, size: int | None) -> dict[str, int]:
    return {} if param is None or size is None else {param: size}


def _next_link(header: str | None) -> str | None:
    """Return the URL of the next page that a header `Link` has."""
    for url, about in _LINK.findall(header or ""):
        if _NEXT.search(about):
            return str(url)
    return None


def _text(value: msgspec.Raw | None) -> str | None:
    """Return a link or cursor as text; a number as it is written."""
    if value is None:
        return None
    read = msgspec.json.decode(value)
    return read if isinstance(read, str | None) else bytes(value).decode()
