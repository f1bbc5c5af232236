"""The section `control` of the settings: how work is shared out, when it is tried again, what it may cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from sealbook.config.documents import Place, convert
from sealbook.model.keys import check_customer_id, normalise_customer_id
from sealbook.model.retry import DEFAULT_RETRIES, Jitter, Retries, RetryPolicies
from sealbook.model.shares import DEFAULT_SHARES
from sealbook.model.spans import parse_span
from sealbook.model.work import Lane

if TYPE_CHECKING:
    from sealbook.config.settings import SourceSettings  # which has ControlSettings in it

Share = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
_SHORTEST_LEASE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """How the control plane shares work out, when it tries again, and what a source may be asked in a day."""

    shares: Mapping[Lane, int] = field(default_factory=lambda: DEFAULT_SHARES)
    fresh_for: timedelta = timedelta(days=3)
    """How long after it was due a missing day counts as fresh; an older one is backfill."""
    lease: timedelta = timedelta(minutes=10)
    retries: RetryPolicies = field(default_factory=RetryPolicies)
    weights: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of customers, by source and id: one where none is given."""
    requests_per_day: Mapping[str, int] = field(default_factory=dict)
    """By source; without one there is no budget."""


class SharesSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`control.shares`."""

    fresh: Share = DEFAULT_SHARES[Lane.FRESH]
    retry: Share = DEFAULT_SHARES[Lane.RETRY]
    refresh: Share = DEFAULT_SHARES[Lane.REFRESH]
    backfill: Share = DEFAULT_SHARES[Lane.BACKFILL]


class RetriesSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`retries` of `control`, of a source or of a query: what is left out is as above it."""

    backoff: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    jitter: Jitter | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    max_age: str | None = None


class ControlSourceSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`control.sources.NAME`."""

    requests_per_day: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    weights: dict[str | int, Any] = {}
    retries: RetriesSection = RetriesSection()
    queries: dict[str, Any] = {}


class ControlSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`control`."""

    shares: SharesSection = SharesSection()
    fresh_for: str = "3d"
    lease: str = "10m"
    retries: RetriesSection = RetriesSection()
    sources: dict[str, Any] = {}


def control_settings(
    section: ControlSection, sources: Mapping[str, SourceSettings], place: Place
) -> ControlSettings:
    """Return the policy of the control plane; what it names must be configured."""
    with (place / "fresh_for").named():
        fresh_for = parse_span("fresh_for", section.fresh_for)
    with (place / "lease").named():
        lease = parse_span("lease", section.lease)
    if lease < _SHORTEST_LEASE:
        raise (place / "lease").error("a lease lasts at least a minute", remedy="Give some minutes: 10m.")
    default = _retries(section.retries, DEFAULT_RETRIES, place / "retries")
    by_source, by_query, weights, requests_per_day = {}, {}, {}, {}
    for name, document in section.sources.items():
        own = place / "sources" / name
        _check_known("source", name, sources, own)
        source, read = sources[name], convert(document, ControlSourceSection, own)
        by_source[name] = _retries(read.retries, default, own / "retries")
        for query, retries in read.queries.items():
            _check_known("query", query, source.queries, own / "queries" / query)
            query_section = convert(retries, RetriesSection, own / "queries" / query)
            by_query[name, query] = _retries(query_section, by_source[name], own / "queries" / query)
        for customer_id, weight in _weights(read.weights, source, own / "weights"):
            weights[name, customer_id] = weight
        if read.requests_per_day is not None:
            requests_per_day[name] = read.requests_per_day
    return ControlSettings(
        shares={lane: getattr(section.shares, lane) for lane in Lane},
        fresh_for=fresh_for,
        lease=lease,
        retries=RetryPolicies(default, by_source, by_query),
        weights=weights,
        requests_per_day=requests_per_day,
    )


def _retries(section: RetriesSection, above: Retries, place: Place) -> Retries:
    """Return a policy: what the section says, the rest as the one above has it."""
    said: dict[str, Any] = {
        name: value for name in ("jitter", "max_attempts") if (value := getattr(section, name)) is not None
    }
    if section.backoff is not None:
        steps = []
        for index, step in enumerate(section.backoff):
            with (place / "backoff" / index).named():
                steps.append(parse_span("backoff", step))
        said["backoff"] = tuple(steps)
    with place.named(*RetriesSection.__struct_fields__):
        if section.max_age is not None:
            said["max_age"] = parse_span("max_age", section.max_age)
        return replace(above, **said)


def _weights(
    listed: Mapping[str | int, Any], source: SourceSettings, place: Place
) -> Iterator[tuple[str, int]]:
    for name, value in listed.items():
        own = place / str(name)
        customer_id = normalise_customer_id(str(name))
        if source.discovery is None:
            _check_known("customer", customer_id, source.customers, own)
        with own.named():
            check_customer_id(source.name, customer_id)
        yield customer_id, convert(value, Share, own)


def _check_known(what: str, name: str, known: Iterator[str] | Any, place: Place) -> None:
    if name not in known:
        raise place.error(
            f"no {what} {name} is configured",
            remedy=f"Correct the name, or add the {what} to the sources of the book.",
        )
