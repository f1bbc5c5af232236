"""The section `console` of the settings: who may use the console, from where, and what it shows of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from sealbook.config.documents import Place

Network = IPv4Network | IPv6Network
Names = tuple[str, ...]


MASK = "•••"
"""What stands in the place of a value that is not shown."""


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """What a question on the page for SQL may take: time, rows of its answer, memory."""

    seconds: float = 30
    rows: int = 10_000
    megabytes: int = 512


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A proxy that says who asks, and the headers in which it does."""

    networks: tuple[Network, ...]
    user_header: str = "X-Forwarded-User"
    groups_header: str | None = None


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Who may use the console, under which names it is asked for, and what it shows of rows."""

    tokens: Path = Path("console-tokens.json")
    """The file in which the hashes of tokens are kept."""
    url: str | None = None
    """Where people find it, if that is not the address that it listens on."""
    hosts: tuple[str, ...] = ()
    """Further names under which it may be asked for."""
    operators: frozenset[str] = frozenset()
    operator_groups: frozenset[str] = frozenset()
    proxy: ProxySettings | None = None
    show_rows: bool = True
    masked_columns: frozenset[str] = frozenset()
    sql: SqlSettings = SqlSettings()
    ledger_roles: tuple[str | None, str | None] = field(default=(None, None))
    """On PostgreSQL, the roles that viewers and operators have there; None: that of the connection."""

    @property
    def public_host(self) -> str | None:
        """The host, and the port if there is one, of `url`."""
        return None if self.url is None else urlsplit(self.url).netloc

    @property
    def is_https(self) -> bool:
        """Whether people reach it by https."""
        return self.url is not None and self.url.startswith("https:")


class ProxySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`console.proxy`."""

    addresses: Annotated[Names, msgspec.Meta(min_length=1)]
    user_header: str = "X-Forwarded-User"
    groups_header: str | None = None


class LedgerRolesSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`console.ledger_roles`."""

    viewer: str | None = None
    operator: str | None = None


class SqlSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`console.sql`."""

    seconds: Annotated[float, msgspec.Meta(gt=0)] = 30
    rows: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    megabytes: Annotated[int, msgspec.Meta(ge=64)] = 512


class ConsoleSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`console`."""

    url: str | None = None
    hosts: Names = ()
    tokens: str = "console-tokens.json"
    proxy: ProxySection | None = None
    operators: Names = ()
    operator_groups: Names = ()
    ledger_roles: LedgerRolesSection = LedgerRolesSection()
    show_rows: bool = True
    masked_columns: Names = ()
    sql: SqlSection = SqlSection()


def console_settings(section: ConsoleSection, root: Path, place: Place) -> ConsoleSettings:
    """Return who may use the console and what it shows; what is no address or header is refused."""
    if section.url is not None:
        parts = urlsplit(section.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise (place / "url").error(
                "expected an http:// or https:// URL with a host and no path",
                remedy="Give the address that people open: https://console.example.com.",
            )
    roles = section.ledger_roles
    return ConsoleSettings(
        tokens=root / section.tokens,
        url=section.url,
        hosts=section.hosts,
        operators=frozenset(section.operators),
        operator_groups=frozenset(section.operator_groups),
        proxy=None if section.proxy is None else _proxy(section.proxy, place / "proxy"),
        show_rows=section.show_rows,
        masked_columns=frozenset(section.masked_columns),
        sql=SqlSettings(section.sql.seconds, section.sql.rows, section.sql.megabytes),
        ledger_roles=(roles.viewer, roles.operator),
    )


def _proxy(section: ProxySection, place: Place) -> ProxySettings:
    networks = []
    for index, text in enumerate(section.addresses):
        try:
            networks.append(ip_network(text))
        except ValueError:
            raise (place / "addresses" / index).error(
                f"{text} is no address", remedy="Give an IP address, or a network as 10.0.0.0/24."
            ) from None
    for name in ("user_header", "groups_header"):
        header = getattr(section, name)
        if header is not None and not header.replace("-", "").isalnum():
            raise (place / name).error(f"{header} cannot be the name of a header")
    return ProxySettings(tuple(networks), section.user_header, section.groups_header)
