"""The customers of a source: the time zone of each account, and which days it has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, tzinfo
from difflib import get_close_matches
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec

from sealbook.config.documents import Place, convert
from sealbook.model.keys import check_customer_id, check_name, normalise_customer_id, parse_date
from sealbook.model.universe import Account

Customer = str | int | dict[str, Any]
"""A customer as it is listed: its id alone, or a `CustomerSection`."""


class CustomerSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of `sources.NAME.customers` that is a mapping."""

    id: str | int
    time_zone: str | None = None
    first_day: str | None = None
    last_day: str | None = None
    account_class: str | None = msgspec.field(default=None, name="class")


def read_accounts(
    names: Collection[str], listed: tuple[Customer, ...], usual: Account, place: Place
) -> Iterator[Account]:
    """Yield the accounts of a source, by its name and its type; what one does not say is as `usual` has it.

    Customers get their canonical form: this is the edge at which hyphens go (R-KEY-2).
    """
    seen = set()
    for index, each in enumerate(listed):
        own = place / index
        section = convert(each, CustomerSection, own) if isinstance(each, dict) else CustomerSection(each)
        customer_id = normalise_customer_id(str(section.id))
        with own.named():
            for name in names:
                check_customer_id(name, customer_id)
        if customer_id in seen:
            raise own.error(f"customer {customer_id} is listed twice", remedy="Take one of the two out.")
        seen.add(customer_id)
        if section.account_class is not None:
            with (own / "class").named():
                check_name("class", section.account_class)
        account = replace(usual, customer_id=customer_id, account_class=section.account_class)
        yield read_days(account, section.time_zone, section.first_day, section.last_day, own)


def read_days(
    account: Account, time_zone: str | None, first_day: str | None, last_day: str | None, place: Place
) -> Account:
    """Return an account with what a place says of its days; what that leaves open stays as it is."""
    said: dict[str, Any] = {}
    if time_zone is not None:
        said["zone"] = zone_of(time_zone, place / "time_zone")
    for field, text in (("first_day", first_day), ("last_day", last_day)):
        if text is not None:
            with (place / field).named():
                said[field] = parse_date(field, text)
    with place.named():
        return replace(account, **said) if said else account


def zone_of(name: str, place: Place) -> tzinfo:
    """Return the time zone of a name that a place gives."""
    zone = find_zone(name)
    if zone is None:
        near = get_close_matches(name, available_timezones(), n=1)
        raise place.error(
            f"there is no time zone {name!r}",
            remedy=f"Did you mean {near[0]}?" if near else "Name one as IANA does, such as America/New_York.",
        )
    return zone


@cache  # thousands of accounts share a few
def find_zone(name: str) -> tzinfo | None:
    """Return the time zone that IANA gave a name; None if there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, no form of a name, a folder of zones
        return None
