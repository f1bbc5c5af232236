"""Texts of queries that are mappings: read strictly, and what is wrong is named by its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import msgspec

from sealbook.config.documents import Step, dotted, error_in, explain
from sealbook.errors import ConfigError
from sealbook.extract.source import option_value
from sealbook.model.contract import Query

_Described = TypeVar("_Described", bound=msgspec.Struct)


class BadText(ConfigError):
    """The text of a query is wrong; `path` is where, below it, and `problem` what."""

    def __init__(
        self, query: Query, problem: str, path: tuple[Step, ...] = (), *, remedy: str | None = None
    ) -> None:
        where = ".".join(filter(None, ("text", dotted(path))))
        super().__init__(f"query {query.name}: {where}: {problem}", remedy=remedy)
        self.path = path
        self.problem = problem


def read_text(query: Query, kind: type[_Described], field: str) -> _Described:
    """Read the text of a query as a struct; one that is no mapping is a field of it alone."""
    document = _mapping(query.text)
    try:
        return msgspec.convert(
            {field: query.text.strip()} if document is None else document, kind, dec_hook=option_value
        )
    except msgspec.ValidationError as error:
        problem = explain(error, kind)
        path = () if document is None else problem.path
        known = ", ".join(each.encode_name for each in msgspec.structs.fields(kind))
        remedy = problem.remedy or f"Its fields are {known}."
        raise BadText(query, problem.text, path, remedy=remedy) from None


def check_columns(query: Query, columns: Iterable[str]) -> None:
    """Refuse columns that no contract of the query has: nobody would ever read them."""
    known = {column.name for contract in query.contracts.values() for column in contract.columns}
    for name in columns:
        if name not in known:
            raise BadText(
                query,
                "no contract of the query has this column",
                ("columns", name),
                remedy="Correct the name, or add the column to the contract.",
            )


def check_texts(queries: Iterable[Query], read: Callable[[Query], object]) -> None:
    """Read each text that queries have; what is wrong with one is named by its line of the catalogue."""
    for query in queries:
        for path, each in _texts(query):
            try:
                read(each)
            except BadText as error:
                if each.file is None:
                    raise
                where = (*path, *error.path)
                raise error_in(each.file, where, error.problem, remedy=error.remedy) from error


def _texts(query: Query) -> Iterator[tuple[tuple[Step, ...], Query]]:
    """Yield a query with each of its texts, and the place of that."""
    place = ("queries", query.name)
    yield (*place, "text"), replace(query, terms={})
    for version, term in query.terms.items():
        if term.text is not None:
            yield (
                (*place, "contracts", version, "text"),
                replace(query, text=term.text, schema_version=version, terms={}),
            )


def _mapping(text: str) -> dict[str, object] | None:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:  # also what begins with a place for the customer
        return None
    return document if isinstance(document, dict) else None
