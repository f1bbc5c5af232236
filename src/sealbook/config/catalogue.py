"""A catalogue file: the queries of one source, and the contracts of their schema_versions."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from sealbook.config.documents import Place, convert, read_document
from sealbook.config.policies import FreshnessSection, UpstreamSection, read_freshness, read_upstreams
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query, RowCount, Rule
from sealbook.model.keys import check_name, parse_date
from sealbook.model.verdict import Severity
from sealbook.model.versions import Term, wrong_renames

Text = str | dict[str, Any]
"""The text of a query; a mapping, which some sources take instead, is kept as its JSON."""


class CatalogueFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The top of a catalogue file."""

    source: str
    queries: dict[str, Any]
    api_version: str | None = None


class QuerySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`queries.NAME`."""

    text: Text
    schema_version: str
    contracts: dict[str, Any]
    freshness: FreshnessSection | None = None
    upstreams: tuple[UpstreamSection, ...] = ()


class ColumnSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`columns.NAME` of a contract."""

    type: str
    required: bool = False
    renamed_from: str | None = None


class RuleSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the `rules` of a contract."""

    name: str
    expression: str
    max_share: Decimal | int = 0
    max_count: int = 0
    severity: Severity = Severity.ERROR


class RowCountSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`row_count` of a contract."""

    min: int | None = None
    max: int | None = None
    min_ratio: Decimal | int | None = None
    max_ratio: Decimal | int | None = None
    last: int = 5


class ContractSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`contracts.SCHEMA_VERSION` of a query."""

    columns: dict[str, Any]
    valid_from: str | None = None
    text: Text | None = None
    primary_key: tuple[str, ...] = ()
    date_column: str | None = None
    rules: tuple[RuleSection, ...] = ()
    allow_empty: bool = False
    strict: bool = False
    row_count: RowCountSection = RowCountSection()


def load_catalogue(file: Path, source: str) -> Mapping[str, Query]:
    """Read the queries of a source, by name."""
    document, top = read_document(file)
    catalogue = convert(document, CatalogueFile, top)
    if catalogue.source != source:
        raise (top / "source").error(
            f"{catalogue.source!r} is used as the catalogue of source {source!r}",
            remedy="Write the same name in both files.",
        )
    if not catalogue.queries:
        raise (top / "queries").error("there is no query", remedy="Write one, or take the source out.")
    return {
        name: _query(name, section, catalogue, top / "queries" / name)
        for name, section in catalogue.queries.items()
    }


def _query(name: str, document: object, catalogue: CatalogueFile, place: Place) -> Query:
    with place.named():
        check_name("query_name", name)
    section = convert(document, QuerySection, place)
    contracts, terms = {}, {}
    for version, each in section.contracts.items():
        contract = convert(each, ContractSection, place / "contracts" / version)
        contracts[version] = _contract(name, version, contract, place / "contracts" / version)
        terms[version] = _term(contract, place / "contracts" / version)
    for wrong in wrong_renames(contracts):
        column = place / "contracts" / wrong.schema_version / "columns" / wrong.column
        raise (column / "renamed_from").error(str(wrong.error), remedy=wrong.error.remedy)
    freshness = read_freshness(section.freshness, place / "freshness")
    upstreams = read_upstreams(catalogue.source, section.upstreams, place / "upstreams")
    with place.named(*QuerySection.__struct_fields__):
        return Query(
            source=catalogue.source,
            name=name,
            text=_text(section.text),
            schema_version=section.schema_version,
            contracts=contracts,
            api_version=catalogue.api_version,
            freshness=freshness,
            upstreams=upstreams,
            terms=terms,
            file=place.file,
        )


def _text(written: Text) -> str:
    """Return a text as queries have it; the order in which a mapping is written stays."""
    if isinstance(written, str):
        return written
    return msgspec.json.Encoder(decimal_format="number").encode(written).decode() if written else ""


def _term(section: ContractSection, place: Place) -> Term:
    text = None if section.text is None else _text(section.text)
    if text is not None and not text.strip():
        raise (place / "text").error("the text is empty", remedy="Leave it out to use that of the query.")
    if section.valid_from is None:
        return Term(text=text)
    with place.named("valid_from"):
        return Term(parse_date("valid_from", section.valid_from), text)


def _contract(query_name: str, version: str, section: ContractSection, place: Place) -> Contract:
    columns = tuple(
        _column(name, column, place / "columns" / name) for name, column in section.columns.items()
    )
    rules = tuple(_rule(rule, place / "rules" / index) for index, rule in enumerate(section.rules))
    with (place / "row_count").named(*RowCountSection.__struct_fields__):
        row_count = RowCount(**msgspec.structs.asdict(section.row_count))
    with place.named(*ContractSection.__struct_fields__):
        return Contract(
            query_name=query_name,
            schema_version=version,
            columns=columns,
            primary_key=section.primary_key,
            date_column=section.date_column,
            rules=rules,
            allow_empty=section.allow_empty,
            strict=section.strict,
            row_count=row_count,
        )


def _column(name: str, document: object, place: Place) -> Column:
    text = document.get("type") if isinstance(document, dict) else None
    if isinstance(text, str) and any(text.count(begin) > text.count(end) for begin, end in ("()", "<>")):
        # In {braces} YAML ends a value at its first comma.
        raise (place / "type").error(
            f"{text!r} breaks off at a comma", remedy='Put the type in quotes, as in "decimal(18,2)".'
        )
    section = convert(document, ColumnSection, place)
    with place.named("type", "renamed_from"):
        return Column(name, ColumnType(section.type), section.required, section.renamed_from)


def _rule(section: RuleSection, place: Place) -> Rule:
    with place.named(*RuleSection.__struct_fields__):
        return Rule(**msgspec.structs.asdict(section))
