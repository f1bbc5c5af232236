"""From settings to the universe: which partitions there should be (R-PST-6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime

from sealbook.config import SourceSettings
from sealbook.ledger.pointers import PointerReader
from sealbook.model.auto_due import LEAST_COMPARED, by_age
from sealbook.model.drift import DriftSum
from sealbook.model.freshness import Freshness
from sealbook.model.selection import Selection
from sealbook.model.universe import Account, Asset, AssetName, Universe


def universe_of(
    sources: Mapping[str, SourceSettings],
    first_known: Mapping[AssetName, date],
    drift: Mapping[AssetName, list[DriftSum]] | None = None,
) -> Universe:
    """Return the universe of the sources of a book, whose ledger knows queries from these days on.

    Due points that are learned follow from the `drift` of each query; without it, they are the usual ones.
    """
    return Universe(
        {
            asset.name: _learned(asset, source.accounts, (drift or {}).get(asset.name, []))
            for source in sources.values()
            for asset in source.assets
        },
        {source.name: source.accounts for source in sources.values()},
        first_known,
    )


def drift_to_learn_from(
    sources: Mapping[str, SourceSettings], pointers: PointerReader, now: datetime
) -> dict[AssetName, list[DriftSum]]:
    """Return what the due points of queries are learned from, where they are: by customer.

    It is of runs of earlier days, in UTC: so points change once a day, and all who ask on a day agree.
    """
    auto = [
        asset.name
        for source in sources.values()
        for asset in source.assets
        if asset.freshness is not None and asset.freshness.auto is not None
    ]
    found: dict[AssetName, list[DriftSum]] = defaultdict(list)
    if auto:
        chosen = Selection(source={each.source for each in auto}, queries={each.query_name for each in auto})
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for each in pointers.drift_sums(chosen, by_customer=True, opened_before=midnight):
            found[AssetName(each.source, each.query_name)].append(each)
    return found


def _learned(asset: Asset, accounts: Mapping[str, Account], drift: Iterable[DriftSum]) -> Asset:
    """Return an asset with the due points that follow from its drift, of all accounts and of each class."""
    policy = asset.freshness
    if policy is None or policy.auto is None:
        return asset
    auto, max_lag = policy.auto, policy.max_lag
    classes: dict[str | None, list[DriftSum]] = defaultdict(list)
    for each in drift:
        account = accounts.get(each.customer_id or "")
        classes[None if account is None else account.account_class].append(each)
    everything = [each for sums in classes.values() for each in sums]
    return replace(
        asset,
        freshness=Freshness.learned(auto, max_lag, by_age(everything)),
        by_class={
            name: Freshness.learned(auto, max_lag, by_age(sums))
            for name, sums in classes.items()
            if name is not None and sum(each.compared for each in sums) >= LEAST_COMPARED
        },
    )
