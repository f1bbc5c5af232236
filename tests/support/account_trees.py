"""An account tree for the local Google Ads server: nested managers, closed accounts, labels, time zones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.google_ads import Batch, Failure, Reply

ROOT = "1000000000"
_SELECTED = re.compile(r"SELECT (.*?) FROM (\w+)")


@dataclass
class Node:
    """An account, and what is linked below it if it is a manager."""

    id: str
    name: str = "an account"
    status: str = "ENABLED"
    time_zone: str = "Europe/Berlin"
    currency: str = "EUR"
    labels: tuple[str, ...] = ()
    hidden: bool = False
    below: list[Node] | None = None

    def walk(self, level: int = 0) -> Iterator[tuple[Node, int]]:
        """Yield it and all below it, with their levels."""
        yield self, level
        for each in self.below or ():
            yield from each.walk(level + 1)


@dataclass
class AccountTree:
    """Answers what is asked of `customer_client` and `label`; give its `answer` to a server."""

    root: Node
    breaks: Failure | None = None
    """What ends a stream of accounts after its first half."""

    def answer(self, customer_id: str, query: str) -> Reply | None:
        """Return the reply to a stream about accounts; None if it is about something else."""
        selected = _SELECTED.search(query)
        if selected is None or selected[2] not in ("customer_client", "label"):
            return None
        paths = [path.strip() for path in selected[1].split(",")]
        manager = next((node for node, _ in self.root.walk() if node.id == customer_id), None)
        if manager is None or manager.below is None:
            return [
                Failure(
                    "PERMISSION_DENIED", [{"error_code": {"authorization_error": "USER_PERMISSION_DENIED"}}]
                )
            ]
        if selected[2] == "label":
            names = sorted({label for node, _ in manager.walk() for label in node.labels})
            rows = [{"label": {"resource_name": _label(customer_id, name), "name": name}} for name in names]
            return [Batch(paths, rows)]
        rows = [self._client(customer_id, node, level) for node, level in manager.walk()]
        half = len(rows) // 2
        if self.breaks is not None:
            return [Batch(paths, rows[:half]), self.breaks]
        return [Batch(paths, rows[:half]), Batch(paths, rows[half:])]

    def _client(self, manager: str, node: Node, level: int) -> dict[str, Any]:
        return {
            "customer_client": {
                "id": int(node.id),
                "descriptive_name": node.name,
                "status": node.status,
                "manager": node.below is not None,
                "hidden": node.hidden,
                "level": level,
                "time_zone": node.time_zone,
                "currency_code": node.currency,
                "applied_labels": [_label(manager, name) for name in node.labels],
            }
        }


def _label(manager: str, name: str) -> str:
    return f"customers/{manager}/labels/{sum(name.encode())}"


def agency() -> AccountTree:
    """Return a tree of two levels of managers, with a closed, a cancelled and a suspended account."""
    return AccountTree(
        Node(
            ROOT,
            "agency",
            below=[
                Node("2000000001", "shop", labels=("daily", "vip")),
                Node("2000000002", "old", status="CANCELED"),
                Node(
                    "1000000001",
                    "region",
                    below=[
                        Node("3000000001", "bakery", time_zone="America/Los_Angeles", currency="USD"),
                        Node("3000000002", "test", status="CLOSED"),
                        Node("3000000003", "bar", status="SUSPENDED", hidden=True, labels=("vip",)),
                    ],
                ),
            ],
        )
    )
