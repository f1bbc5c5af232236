"""From settings to the universe: which partitions there should be (R-PST-6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from sealbook.config import SourceSettings
from sealbook.model.universe import AssetName, Universe


def universe_of(sources: Mapping[str, SourceSettings], first_known: Mapping[AssetName, date]) -> Universe:
    """Return the universe of the sources of a book, whose ledger knows queries from these days on."""
    return Universe(
        {asset.name: asset for source in sources.values() for asset in source.assets},
        {source.name: source.accounts for source in sources.values()},
        first_known,
    )
