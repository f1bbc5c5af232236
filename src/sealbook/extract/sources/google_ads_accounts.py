"""The account tree of Google Ads: all that is linked below a manager account, however deep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sealbook.extract.sources.google_ads_errors import classed, request_errors
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.keys import GOOGLE_ADS, check_customer_id

_FIELDS = (
    "id",
    "descriptive_name",
    "status",
    "manager",
    "hidden",
    "level",
    "time_zone",
    "currency_code",
    "applied_labels",
)
TREE = f"SELECT {', '.join(f'customer_client.{name}' for name in _FIELDS)} FROM customer_client"
LABELS = "SELECT label.resource_name, label.name FROM label"

_CLOSED = frozenset({"CANCELED", "CLOSED"})
"""A suspended account can still be asked for its days, and may serve again."""


@dataclass(frozen=True, slots=True)
class AccountTree:
    """Asks a service for accounts: one request, and one more if any of them has labels."""

    service: Any
    api_version: str
    timeout_seconds: float

    def accounts(self, root: str) -> Iterator[DiscoveredAccount]:
        """Yield the manager itself and all below it, of any status."""
        check_customer_id(GOOGLE_ADS, root)
        found = [row.customer_client for row in self._rows(root, TREE)]
        names: dict[str, str] = {}
        if any(each.applied_labels for each in found):  # which have the names of the root's own labels
            rows = self._rows(root, LABELS)
            names = {row.label.resource_name: row.label.name for row in rows}
        for each in found:
            yield _account(each, names)

    def _rows(self, root: str, text: str) -> Iterator[Any]:
        try:
            stream = self.service.search_stream(
                customer_id=root, query=text, retry=None, timeout=self.timeout_seconds
            )
            for answer in stream:
                yield from answer.results
        except request_errors() as error:
            raise classed(error, f"the accounts below {root}", self.api_version) from error


def _account(client: Any, labels: dict[str, str]) -> DiscoveredAccount:
    statuses = client.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
    status = statuses[client.status].name if client.status in statuses else str(client.status)
    return DiscoveredAccount(
        f"{client.id:010d}",
        name=client.descriptive_name.strip() or None,
        status=status.lower(),
        is_open=status not in _CLOSED,
        is_manager=client.manager,
        is_hidden=client.hidden,
        level=client.level,
        time_zone=client.time_zone or None,
        currency=client.currency_code or None,
        labels=tuple(labels.get(name, name) for name in client.applied_labels),
    )
