"""`customers` of a source that is a mapping: which accounts below a root, as the source tells of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Any

import msgspec

from sealbook.config.accounts import CustomerSection, read_days, zone_of
from sealbook.config.documents import Place, convert
from sealbook.model.discovery import Discovery, Override
from sealbook.model.keys import check_customer_id, normalise_customer_id
from sealbook.model.spans import parse_span
from sealbook.model.universe import Account

_SHORTEST = timedelta(minutes=1)


class DiscoverySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sources.NAME.customers` that is a mapping."""

    discover: str | int
    include: tuple[str | int, ...] | None = None
    exclude: tuple[str | int, ...] = ()
    labels: tuple[str, ...] = ()
    backfill: str | None = None
    every: str = "1d"
    override: tuple[dict[str, Any], ...] = ()


def read_discovery(
    names: Collection[str], document: dict[str, Any], usual: Account, place: Place
) -> Discovery:
    """Return which accounts of a source are wanted; what is not said of one is as `usual` has it."""
    section = convert(document, DiscoverySection, place)
    include = None if section.include is None else list(_ids(names, section.include, place / "include"))
    if include == []:
        raise (place / "include").error("it includes nobody", remedy="Name accounts, or leave it out: all.")
    exclude = frozenset(_ids(names, section.exclude, place / "exclude"))
    for index, customer_id in enumerate(include or ()):
        if customer_id in exclude:
            raise (place / "include" / index).error(
                f"customer {customer_id} is excluded too", remedy="Take it out of one of the two."
            )
    (root,) = _ids(names, (section.discover,), place / "discover")
    every = _span("every", section.every, place)
    if every < _SHORTEST:
        raise (place / "every").error("that is too often", remedy="Give at least a minute; a day is usual.")
    return Discovery(
        root,
        None if include is None else frozenset(include),
        exclude,
        frozenset(section.labels),
        None if section.backfill is None else _span("backfill", section.backfill, place),
        every,
        dict(_overrides(names, section.override, place / "override")),
        usual,
    )


def _ids(names: Collection[str], listed: tuple[str | int, ...], place: Place) -> Iterator[str]:
    for index, each in enumerate(listed):
        customer_id = normalise_customer_id(str(each))
        with (place if place.path[-1] == "discover" else place / index).named():
            for name in names:
                check_customer_id(name, customer_id)
        yield customer_id


def _span(field: str, text: str, place: Place) -> timedelta:
    with (place / field).named():
        return parse_span(field, text)


def _overrides(
    names: Collection[str], listed: tuple[dict[str, Any], ...], place: Place
) -> Iterator[tuple[str, Override]]:
    seen = set()
    for index, each in enumerate(listed):
        own = place / index
        section = convert(each, CustomerSection, own)
        (customer_id,) = _ids(names, (section.id,), place)
        if customer_id in seen:
            raise own.error(f"customer {customer_id} is listed twice", remedy="Take one of the two out.")
        seen.add(customer_id)
        days = read_days(Account(customer_id), None, section.first_day, section.last_day, own)
        zone = None if section.time_zone is None else zone_of(section.time_zone, own / "time_zone")
        yield customer_id, Override(zone, days.first_day, days.last_day)
