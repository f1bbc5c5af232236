"""Asks a source which accounts there are."""

from __future__ import annotations

from collections.abc import Iterator

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError, Corrupt, InvalidInput
from sealbook.extract.checking import located
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import DiscoveredAccount, Discovers, load_source
from sealbook.model.keys import check_customer_id

_RETRY = RetryPolicy(tries=3, base_seconds=0.5, cap_seconds=2.0)
"""Rides out a hiccup; what lasts longer is tried again by the control loop."""


def discover_accounts(settings: SourceSettings) -> list[DiscoveredAccount]:
    """Return every account that a source tells of below the root of its settings: all, or an error."""
    discovery = settings.discovery
    if discovery is None:
        raise ConfigError(
            f"the customers of source {settings.name} are listed in the settings",
            remedy="To have them found, write `customers: {discover: ROOT}`.",
        )
    with located(settings):
        source = load_source(settings.type, settings.options)
        if not isinstance(source, Discovers):
            raise ConfigError("it cannot tell which accounts there are", remedy="List its `customers`.")
        queries = list(settings.queries.values())
        return with_retries(
            lambda: list(_checked(settings.name, source.accounts(discovery.root, queries))), _RETRY
        )


def _checked(name: str, told: Iterator[DiscoveredAccount]) -> Iterator[DiscoveredAccount]:
    for each in told:
        try:
            check_customer_id(name, each.customer_id)
        except InvalidInput as error:
            raise Corrupt(f"it tells of an account that cannot be: {error}") from error
        yield each
