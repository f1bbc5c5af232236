"""From settings and options to the guard of a console: where it listens, and who it lets in."""

from __future__ import annotations

from ipaddress import ip_address

from sealbook.config.console import ConsoleSettings
from sealbook.console.security.guard import Guard, Identity
from sealbook.errors import ConfigError

LOOPBACK = "127.0.0.1"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, settings: ConsoleSettings, *, has_tokens: bool) -> None:
    """Refuse an address that others reach, unless it is configured how they are known: ConfigError."""
    if is_loopback(host) or settings.proxy is not None or has_tokens:
        return
    raise ConfigError(
        f"others reach {host}, and nothing is configured by which they are known",
        remedy="Create a token (`sealbook console token create`), or name a proxy (`console.proxy`);"
        " or listen on 127.0.0.1.",
    )


def guard_of(host: str, port: int, settings: ConsoleSettings, identities: tuple[Identity, ...]) -> Guard:
    """Return the guard of a console that listens on an address."""
    names = {*_LOCAL_NAMES} if is_loopback(host) else {host}
    hosts = {f"{name}:{port}" for name in names}
    if port == 80:
        hosts |= names
    hosts |= {each.lower() for each in settings.hosts}
    if settings.public_host is not None:
        hosts.add(settings.public_host.lower())
    return Guard(frozenset(hosts), identities)
