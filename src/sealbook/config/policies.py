"""When the days of a query are due, and what its partitions are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from sealbook.config.documents import Place
from sealbook.errors import InvalidInput
from sealbook.model.auto_due import AutoDue
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

    due: tuple[str, ...] | str
    max_lag: str = "0h"
    within: str | None = None
    at_most: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    tolerance: str | None = None


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
    if isinstance(section.due, str):
        return _read_auto(section, section.due, place)
    for field in _LEARNING:
        if getattr(section, field) is not None:
            raise (place / field).error(
                f"{field} is for due points that are learned", remedy="Take it out, or say `due: auto`."
            )
    due = []
    for index, point in enumerate(section.due):
        with (place / "due" / index).named():
            due.append(parse_span("due", point))
    with place.named(*FreshnessSection.__struct_fields__):
        return Freshness(tuple(due), parse_span("max_lag", section.max_lag))


_LEARNING = ("within", "at_most", "tolerance")
_PERCENT = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,6})?)%")


def _read_auto(section: FreshnessSection, due: str, place: Place) -> Freshness:
    """Read a policy whose due points are learned; what it does not say is as usual."""
    if due != "auto":
        raise (place / "due").error(
            f"due is {due!r}", remedy="Give a list of due points, such as [6h, 3d], or `auto`."
        )
    said: dict[str, Any] = {}
    with place.named(*FreshnessSection.__struct_fields__):
        if section.within is not None:
            said["within"] = parse_span("within", section.within)
        if section.at_most is not None:
            said["at_most"] = section.at_most
        if section.tolerance is not None:
            match = _PERCENT.fullmatch(section.tolerance)
            if match is None:
                raise InvalidInput.of("tolerance", section.tolerance, "a share in percent: 0.1%")
            said["tolerance"] = float(match[1]) / 100
        return Freshness.learned(AutoDue(**said), parse_span("max_lag", section.max_lag))


def read_upstreams(source: str, sections: Iterable[UpstreamSection], place: Place) -> tuple[Upstream, ...]:
    """Read what a query of a source is made of; whether that is there, the whole book tells."""
    found = []
    for index, section in enumerate(sections):
        asset = AssetName(section.source or source, section.query)
        with (place / index).named(*UpstreamSection.__struct_fields__):
            found.append(Upstream(asset, *section.days, all_customers=section.customers is Customers.ALL))
    return tuple(found)
