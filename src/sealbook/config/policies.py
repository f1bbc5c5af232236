"""When the days of a query are due, and what its partitions are made of."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec

from sealbook.config.documents import Place
from sealbook.model.freshness import Freshness
from sealbook.model.spans import parse_span
from sealbook.model.universe import AssetName, Upstream

Offset = Annotated[int, msgspec.Meta(ge=-366, le=366)]


class Customers(StrEnum):
    """Of which customers upstream partitions are."""

    SAME = "same"
    ALL = "all"


class FreshnessSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`freshness` of a source or of a query."""

    due: tuple[str, ...]
    max_lag: str = "0h"


class UpstreamSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the `upstreams` of a query."""

    query: str
    source: str | None = None
    days: tuple[Offset, Offset] = (0, 0)
    customers: Customers = Customers.SAME


def read_freshness(section: FreshnessSection | None, place: Place) -> Freshness | None:
    """Read the policy that stands at a place, if there is one."""
    if section is None:
        return None
    due = []
    for index, point in enumerate(section.due):
        with (place / "due" / index).named():
            due.append(parse_span("due", point))
    with place.named(*FreshnessSection.__struct_fields__):
        return Freshness(tuple(due), parse_span("max_lag", section.max_lag))


def read_upstreams(source: str, sections: Iterable[UpstreamSection], place: Place) -> tuple[Upstream, ...]:
    """Read what a query of a source is made of; whether that is there, the whole book tells."""
    found = []
    for index, section in enumerate(sections):
        asset = AssetName(section.source or source, section.query)
        with (place / index).named(*UpstreamSection.__struct_fields__):
            found.append(Upstream(asset, *section.days, all_customers=section.customers is Customers.ALL))
    return tuple(found)
