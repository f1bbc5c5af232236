"""From settings to the universe."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from sealbook.config import SourceSettings
from sealbook.model.universe import Account, Asset, AssetName, Universe


def universe_of(sources: Mapping[str, SourceSettings], first_known: Mapping[AssetName, date]) -> Universe:
    return Universe(
        {AssetName(s.name, q): Asset(AssetName(s.name, q)) for s in sources.values() for q in s.queries},
        {s.name: {c: Account(c) for c in s.customers} for s in sources.values()},
        first_known,
    )
