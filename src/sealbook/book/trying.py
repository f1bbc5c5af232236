"""A query that is tried: its first rows, and a contract proposed from them. Nothing is sealed or recorded."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import count, islice

from sealbook.config import SourceSettings, find_query
from sealbook.errors import InvalidInput
from sealbook.extract.checking import check_sources, log_remarks
from sealbook.extract.source import load_source
from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query
from sealbook.model.selection import Selection
from sealbook.raw.lines import encode_rows
from sealbook.validate.infer import Proposal, infer_from_answer

NEW_QUERY = "new_query"
"""What a query is called that has no name yet."""
_LOOKED_AT = 1_000
_NO_CONTRACT = (Column("any", ColumnType.STRING),)


@dataclass(frozen=True, slots=True)
class TriedQuery:
    """What a source answered: its first rows as lines of JSON, and what contract they would hold.

    There is no proposal where there is no row. It is made from up to 1,000 rows.
    """

    key: PartitionKey
    query: Query
    lines: tuple[bytes, ...]
    is_whole: bool
    """Whether these are all rows of the partition."""
    proposal: Proposal | None


def try_query(
    sources: Mapping[str, SourceSettings],
    name: str | None,
    customer_id: str,
    day: date,
    *,
    source: str | None = None,
    text: str | None = None,
    rows: int = 10,
) -> TriedQuery:
    """Ask a source for a partition of a configured query, or of a text that is in no catalogue yet."""
    query = _query(sources, name, source, text)
    key = PartitionKey(query.source, customer_id, query.name, day)
    settings = replace(sources[query.source], queries={query.name: query})
    asked = Selection(source=query.source, queries=query.name)
    log_remarks(check_sources({settings.name: settings}, [asked]))
    answer = load_source(settings.type, settings.options).fetch(key, query.on(day))
    try:
        most = max(rows, _LOOKED_AT)
        found = list(islice(answer, most + 1))
    finally:
        if isinstance(answer, Generator):
            answer.close()  # the server need not send the rest
    lines = b"".join(encode_rows(found[:most])).split(b"\n")[:-1]
    is_whole = len(found) <= most
    version = next(str(number) for number in count(1) if not _has(sources, query, str(number)))
    proposal = infer_from_answer(key, lines, version, is_whole=is_whole) if lines else None
    return TriedQuery(key, query, tuple(lines[:rows]), is_whole and len(lines) <= rows, proposal)


def _query(
    sources: Mapping[str, SourceSettings], name: str | None, source: str | None, text: str | None
) -> Query:
    if text is None:
        if name is None:
            raise InvalidInput(
                "there is no telling which query to try", field="query", remedy="Name one, or give its text."
            )
        return find_query(sources, name, source)
    if name is not None and any(name in each.queries for each in sources.values()):
        return replace(find_query(sources, name, source), text=text, terms={})
    settings = _source(sources, source)
    like = next(iter(settings.queries.values()))
    name = name or NEW_QUERY
    contracts = {"1": Contract(name, "1", _NO_CONTRACT)}
    return Query(settings.name, name, text, "1", contracts, like.api_version)


def _source(sources: Mapping[str, SourceSettings], name: str | None) -> SourceSettings:
    if name is None and len(sources) != 1:
        raise InvalidInput(
            "there is no telling which source to ask", field="source", remedy="Say which by `source`."
        )
    found = next(iter(sources)) if name is None else name
    if found not in sources:
        raise InvalidInput.of("source", found, f"one of {', '.join(sources)}")
    return sources[found]


def _has(sources: Mapping[str, SourceSettings], query: Query, version: str) -> bool:
    known = sources[query.source].queries.get(query.name)
    return known is not None and version in known.contracts
