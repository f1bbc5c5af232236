"""People that a proxy has let in: it says who they are, and it alone is believed."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import Response

from sealbook.config.console import ConsoleSettings, ProxySettings
from sealbook.console.security.people import Person, Role

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class ProxyIdentity:
    """Who a named proxy says that asks: an operator if they, or a group of theirs, are configured as one."""

    proxy: ProxySettings
    operators: frozenset[str] = frozenset()
    operator_groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: ConsoleSettings) -> ProxyIdentity | None:
        """Return what is configured; None if no proxy is."""
        if settings.proxy is None:
            return None
        return cls(settings.proxy, settings.operators, settings.operator_groups)

    def person(self, request: Request) -> Person | None:
        """Return whom the proxy names; None if it is not the proxy that asks, or it names nobody, or two."""
        if not self._is_proxy(request):
            return None
        names = request.headers.getlist(self.proxy.user_header)
        name = names[0].strip() if len(names) == 1 else ""
        if not name or not name.isprintable() or len(name) > _LONGEST_NAME:
            return None
        may_act = name in self.operators or not self.operator_groups.isdisjoint(self._groups(request))
        return Person(name, Role.OPERATOR if may_act else Role.VIEWER)

    def welcome(self, request: Request) -> Response | None:
        """Let nobody in: the proxy does, each time."""
        del request
        return None

    def sign_in(self, secret: str) -> tuple[str, str] | None:
        """Know nobody by a secret."""
        del secret
        return None

    def _is_proxy(self, request: Request) -> bool:
        if request.client is None:
            return False
        try:
            address = ip_address(request.client.host)
        except ValueError:
            return False
        return any(address in network for network in self.proxy.networks)

    def _groups(self, request: Request) -> list[str]:
        header = self.proxy.groups_header
        given = [] if header is None else request.headers.getlist(header)
        return [name.strip() for text in given for name in text.split(",")]
