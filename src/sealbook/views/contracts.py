"""Contracts, with what they belong to and their hashes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from sealbook.config import Settings
from sealbook.model.contract import Contract, Query
from sealbook.model.selection import Selection
from sealbook.validate.contracts import validator_version


@dataclass(frozen=True, slots=True)
class ContractView:
    """A contract; `is_current` if it is that of new extractions."""

    source: str
    is_current: bool
    contract_hash: str
    validator_version: str
    contract: Contract

    def to_dict(self) -> dict[str, object]:
        """Return one flat object: the contract's own fields, and what it belongs to."""
        fields = asdict(self)
        contract = fields.pop("contract")
        return {"source": fields.pop("source"), **contract, **fields}


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
    for contract in sorted(
        query.contracts.values(), key=lambda each: each.schema_version != query.schema_version
    ):
        yield ContractView(
            query.source,
            contract.schema_version == query.schema_version,
            contract.hash,
            validator_version(contract),
            contract,
        )
