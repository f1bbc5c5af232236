"""Fetching what is asked for: what a statement that is made of `hold` is given about its series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable

from sealbook.ledger.status.asking import Asked, Calendar, Days, Series
from sealbook.ledger.status.gathering import gather
from sealbook.ledger.status.given import NONE, Given, Numbers, Stretches
from sealbook.ledger.status.giving import fetch_given
from sealbook.ledger.status.held import Bit, Shape
from sealbook.ledger.status.tables import day_of
from sealbook.ledger.status.timeline import FOREVER, Stretch, stretches
from sealbook.model.universe import AssetName, Upstream

_NO_DAYS = (FOREVER, -FOREVER)


def fetch(connection: Connection, statement: Executable, asked: Asked) -> Sequence[Any]:
    """Return what a statement finds of what is asked for."""
    shared = connection.dialect.name == "postgresql"
    return fetch_given(connection, statement, _given(asked, gather(connection, asked), shared=shared))


def _given(asked: Asked, gathered: Sequence[Numbers], *, shared: bool) -> Given:
    """Say what is given; a profile is that of one series, or `shared` by those that began on other days."""
    known = {each.number: each for each in asked.series if each.number is not None}
    calendars = _calendars(asked, known.values()) if shared else {}
    profiles: dict[Stretches, int] = {}
    for each in known.values():
        profiles.setdefault(calendars.get(each.calendar, each.stretches), len(profiles) + 1)
    assets = {name: place for place, name in enumerate(asked.assets)}
    contracts = _contracts(asked)
    codes = {name: _code(asked, name, contracts) for name in asked.assets}
    links = {link: place for place, link in enumerate(asked.links, 1)}
    shape = asked.shape
    since = min((each.since for each in asked.series), default=FOREVER)
    until = max((each.until for each in asked.series), default=-FOREVER)
    distances = [one.first for each in asked.upstreams.values() for one in each.days]
    above = {(one.asset, each.name[1]) for each in known.values() for one in asked.upstreams[each.asset].days}
    return Given(
        columns=shape.columns,
        series=[
            (
                number,
                assets[each.asset] << Bit.ASSET,
                profiles[calendars.get(each.calendar, each.stretches)],
                *(each.expected or _NO_DAYS),
                each.due_until,
                *codes[each.asset],
                *_upstreams(asked, each, shape, links),
            )
            for number, each in known.items()
        ],
        profiles=profiles,
        number=_number,
        contracts={number: contracts[digest] for number, digest in asked.validators.items() if digest},
        gathered=gathered,
        since=since,
        until=until,
        keys=[(each.number, each.since) for each in asked.series if asked.keyed and each.number is not None],
        above=frozenset(asked.number_of(*each) or NONE for each in above) - {NONE},
        above_since=since + min(distances, default=0),
        above_until=until + max(distances, default=0),
    )


def _calendars(asked: Asked, series: Iterable[Series]) -> dict[Calendar | None, Stretches]:
    """Return the days of each calendar, from the first to the last that any of some series has.

    PostgreSQL is given every one of them: accounts that have begun on different days share what they can.
    """
    spans: dict[Calendar, Days] = {}
    for each in series:
        if each.calendar is not None and each.expected is not None:
            first, last = spans.get(each.calendar, each.expected)
            spans[each.calendar] = min(first, each.expected[0]), max(last, each.expected[1])
    return {
        calendar: stretches(*calendar, (day_of(first), day_of(last)), asked.expectations.now)
        for calendar, (first, last) in spans.items()
    }


def _contracts(asked: Asked) -> dict[str, int]:
    """Number the contracts by which validators judge; those that are as good as the one in force as that.

    A contract's hash says its query, so to be as good for one query is to be so for all that have it.
    """
    judging = sorted({*filter(None, asked.validators.values())})
    numbers = {digest: place for place, digest in enumerate(judging, 1)}
    for name in asked.assets:
        code = asked.expectations.in_force.get(name)
        if code is not None and code.also:
            number = numbers.setdefault(code.contract_hash, len(numbers) + 1)
            numbers.update(dict.fromkeys(code.also & numbers.keys(), number))
    return numbers


def _code(asked: Asked, asset: AssetName, contracts: Mapping[str, int]) -> tuple[int, int]:
    """Return a validator that judges by the contract in force, and the number of that."""
    code = asked.expectations.in_force.get(asset)
    if code is None:
        return NONE, NONE
    judging = (number for number, digest in asked.validators.items() if digest == code.contract_hash)
    return max(judging, default=NONE), contracts.get(code.contract_hash, len(contracts) + 1)


def _number(stretch: Stretch) -> int:
    past_deadline = stretch.late_before is not None
    return (stretch.due << Bit.DUE) + (past_deadline << Bit.PAST_DEADLINE)


def _upstreams(
    asked: Asked, each: Series, shape: Shape, links: Mapping[tuple[AssetName, Upstream], int]
) -> Iterator[int]:
    """Yield where the upstreams of a series lie, in the order of the columns of a shape."""
    days, windows, gathered = asked.upstreams[each.asset]
    for one in _padded(days, shape.days):
        yield from (*_above(asked, each, one), 0 if one is None else one.first)
    for one in _padded(windows, shape.windows):
        yield from (*_above(asked, each, one), *((0, 0) if one is None else (one.first, one.last)))
    for one in _padded(gathered, shape.gathered):
        yield NONE if one is None else links[each.asset, one]


def _above(asked: Asked, each: Series, upstream: Upstream | None) -> tuple[int, int, int]:
    """Return the number of the series of an upstream, and which days of it are expected."""
    _, customer_id, _ = each.name
    days = None if upstream is None else asked.expected(upstream.asset, customer_id)
    if upstream is None or days is None:
        return NONE, *_NO_DAYS
    return asked.number_of(upstream.asset, customer_id) or NONE, *days


def _padded(upstreams: list[Upstream], length: int) -> list[Upstream | None]:
    return [*upstreams, *([None] * (length - len(upstreams)))]
