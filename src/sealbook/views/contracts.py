"""Contracts, with what they belong to and their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from itertools import pairwise

from sealbook.config import Settings
from sealbook.errors import InvalidInput
from sealbook.model.contract import Contract, Query
from sealbook.model.contract_diff import Change, diff_contracts
from sealbook.model.selection import Selection
from sealbook.model.versions import ALWAYS, Term
from sealbook.validate.contracts import validator_version


@dataclass(frozen=True, slots=True)
class ContractView:
    """A contract; `is_current` if it is that of new extractions.

    Days from `holds_from` on, up to `holds_until`, are fetched under it; none at all unless it `holds`.
    """

    source: str
    is_current: bool
    holds: bool
    holds_from: date | None
    holds_until: date | None
    contract_hash: str
    validator_version: str
    contract: Contract

    def to_dict(self) -> dict[str, object]:
        """Return one flat object: the contract's own fields, and what it belongs to."""
        fields = asdict(self)
        contract = fields.pop("contract")
        return {"source": fields.pop("source"), **contract, **fields}


def compare_versions(queries: Iterable[Query], before: str, after: str) -> list[tuple[Query, list[Change]]]:
    """Return what differs between two versions of each query that has both.

    InvalidInput if none has; the text of the query and `valid_from` are among the differences.
    """
    found = [query for query in queries if before in query.contracts and after in query.contracts]
    if not found:
        known = ", ".join(dict.fromkeys(version for query in queries for version in query.contracts))
        pair = f"{before} and {after}"
        raise InvalidInput.of("schema_version", pair, f"two of one query: {known or 'none'}")
    return [(query, [*_terms(query, before, after), *_contracts(query, before, after)]) for query in found]


def _contracts(query: Query, before: str, after: str) -> list[Change]:
    return diff_contracts(query.contracts[before], query.contracts[after])


def _terms(query: Query, before: str, after: str) -> Iterator[Change]:
    old, new = (query.terms.get(version, Term()) for version in (before, after))
    if old.valid_from != new.valid_from:
        before_day, after_day = (
            None if each.valid_from is None else str(each.valid_from) for each in (old, new)
        )
        yield Change("valid_from", before_day, after_day, "the first day that is fetched under it")
    if (old.text or query.text) != (new.text or query.text):
        yield Change("text", old.text or query.text, new.text or query.text)


def chosen_queries(settings: Settings, selection: Selection) -> list[Query]:
    """Return the configured queries that are chosen by source and name."""
    return [
        query
        for source in settings.sources.values()
        for query in source.queries.values()
        if (selection.source is None or query.source in selection.source)
        and (selection.queries is None or query.name in selection.queries)
    ]


def contract_views(query: Query) -> Iterator[ContractView]:
    """Yield the contracts of a query, the one of new extractions first."""
    spans = {
        span.schema_version: (
            None if span.valid_from == ALWAYS else span.valid_from,
            None if after is None else after.valid_from - timedelta(days=1),
        )
        for span, after in pairwise([*query.spans, None])
        if span is not None
    }
    for contract in sorted(
        query.contracts.values(), key=lambda each: each.schema_version != query.schema_version
    ):
        yield ContractView(
            query.source,
            contract.schema_version == query.schema_version,
            contract.schema_version in spans,
            *spans.get(contract.schema_version, (None, None)),
            contract.hash,
            validator_version(contract),
            contract,
        )
