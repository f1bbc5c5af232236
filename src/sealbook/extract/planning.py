"""Which partitions to extract, and how they are spread over tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta

from sealbook.config import SourceSettings, check_configured
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey


def plan_keys(
    sources: Mapping[str, SourceSettings],
    since: date,
    until: date,
    *,
    source: str | None = None,
    customers: Collection[str] | None = None,
    queries: Collection[str] | None = None,
) -> dict[str, list[PartitionKey]]:
    """Return by source every partition that is configured, or of those named, in a span of days."""
    if since > until:
        raise InvalidInput.of("since", since.isoformat(), f"a day not after until, which is {until}")
    days = [since + timedelta(days=number) for number in range((until - since).days + 1)]
    check_configured(sources, source=source, customers=customers, queries=queries)
    chosen = [each for name, each in sources.items() if source in (None, name)]
    plan = {
        each.name: [
            PartitionKey(each.name, customer_id, query_name, day)
            for customer_id in each.customers
            if customers is None or customer_id in customers
            for query_name in each.queries
            if queries is None or query_name in queries
            for day in days
        ]
        for each in chosen
    }
    return {name: keys for name, keys in plan.items() if keys}


def spread(keys: Iterable[PartitionKey], tasks: int) -> list[list[PartitionKey]]:
    """Deal keys to tasks: equally many to each, and each account's to all, so that a slow one holds none up.

    Within a task the accounts take turns, for the same reason.
    """
    accounts: dict[str, list[PartitionKey]] = defaultdict(list)
    for key in keys:
        accounts[key.customer_id].append(key)
    in_turn = [(place, key) for own in accounts.values() for place, key in enumerate(own)]
    dealt = [sorted(in_turn[first::tasks], key=lambda item: item[0]) for first in range(tasks)]
    return [[key for _, key in task] for task in dealt if task]
