"""From settings and options to the guard of a console: where it listens, and who it lets in."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from sealbook.config.console import ConsoleSettings
from sealbook.console.security.guard import Guard, Identity
from sealbook.console.security.tokens import TokenFile
from sealbook.errors import ConfigError

LOOPBACK = "127.0.0.1"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, settings: ConsoleSettings) -> None:
    """Refuse an address that others reach, unless they are known and so is what they call it: ConfigError."""
    if is_loopback(host):
        return
    if settings.proxy is None and not TokenFile(settings.tokens).all():
        raise ConfigError(
            f"others reach {host}, and there is no way by which they are known",
            remedy="Create a token (`sealbook console token create`), or name a proxy (`console.proxy`);"
            " or listen on 127.0.0.1.",
        )
    if settings.url is None and not settings.hosts and _is_any(host):
        raise ConfigError(
            f"{host} is every address of this machine, and no name",
            remedy="Say what people open, by `console.url`, or listen on one address.",
        )


def _is_any(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def guard_of(host: str, port: int, settings: ConsoleSettings, identities: Sequence[Identity]) -> Guard:
    """Return the guard of a console that listens on an address."""
    names = {*_LOCAL_NAMES} if is_loopback(host) else {host}
    hosts = {f"{name}:{port}" for name in names}
    if port == 80:
        hosts |= names
    hosts |= {each.lower() for each in settings.hosts}
    if settings.public_host is not None:
        hosts.add(settings.public_host.lower())
    return Guard(frozenset(hosts), identities, settings.is_https)
