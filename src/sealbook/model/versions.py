"""The schema_versions of a query: for which days each is fetched, and which of their columns are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from sealbook.errors import InvalidInput

if TYPE_CHECKING:
    from sealbook.model.contract import Contract

ALWAYS = date.min
"""From when on a version holds that does not say so."""


@dataclass(frozen=True, slots=True)
class Term:
    """From which day on a version holds, and its own text of the query, where it has one (R-VER-7)."""

    valid_from: date | None = None
    text: str | None = None


class Span(NamedTuple):
    """From which day on new extractions are of a version, up to the next span."""

    valid_from: date
    schema_version: str


class WrongRename(NamedTuple):
    """A column whose `renamed_from` cannot be: in which version, and what is wrong with it."""

    schema_version: str
    column: str
    error: InvalidInput


def spans_of(terms: Mapping[str, Term], present: str) -> tuple[Span, ...]:
    """Return which version new extractions are of, from which day on, in the order of days.

    Of several that hold from the same day on it is the present one, or else the one that is written last.
    """
    if not terms:
        return (Span(ALWAYS, present),)
    winners: dict[date, str] = {}
    for version, term in terms.items():
        since = term.valid_from or ALWAYS
        if winners.get(since) != present:
            winners[since] = version
    return tuple(Span(*each) for each in sorted(winners.items()))


def version_on(spans: Iterable[Span], day: date) -> str:
    """Return the version of a day."""
    *_, last = (each.schema_version for each in spans if each.valid_from <= day)
    return last


def check_spans(query_name: str, spans: tuple[Span, ...], present: str) -> None:
    """Refuse versions of which none holds for early days, or of which the present is not the last."""
    first, last = spans[0], spans[-1]
    if first.valid_from != ALWAYS:
        raise InvalidInput(
            f"query {query_name} has no version that holds before {first.valid_from}",
            field=f"query {query_name} contracts",
            remedy=f"Leave valid_from out of version {first.schema_version!r}.",
        )
    if last.schema_version != present:
        raise InvalidInput(
            f"query {query_name} schema_version {present!r} is not the version of the latest days:"
            f" {last.schema_version!r} holds from {last.valid_from} on",
            field=f"query {query_name} schema_version",
            remedy=f'Write schema_version: "{last.schema_version}", or a later valid_from in {present!r}.',
        )


def names_in_reads(contracts: Iterable[Contract]) -> dict[str, dict[str, str]]:
    """Return for each version what those of its columns are called in reads that go by another name there.

    Columns that `renamed_from` connects are one, over any number of versions. Its name is that of the first
    contract that has it: give the present one first, and then the latest.
    """
    several = list(contracts)
    groups = _groups(several)
    shown: dict[frozenset[str], str] = {}
    for contract in several:
        for column in contract.columns:
            shown.setdefault(groups.get(column.name, frozenset({column.name})), column.name)
    renamed = {
        contract.schema_version: {
            column.name: shown[groups[column.name]]
            for column in contract.columns
            if column.name in groups and shown[groups[column.name]] != column.name
        }
        for contract in several
    }
    return {version: names for version, names in renamed.items() if names}


def wrong_renames(contracts: Mapping[str, Contract]) -> Iterator[WrongRename]:
    """Yield each `renamed_from` that names no column of another version, or makes two of one version one."""
    groups = _groups(contracts.values())
    for version, contract in contracts.items():
        for column in contract.columns:
            before = column.renamed_from
            if before is None:
                continue
            others = {
                name: each
                for each in contracts.values()
                if each is not contract
                for name in (other.name for other in each.columns)
            }
            if before not in others:
                known = ", ".join(sorted(others)) or "there is no other version"
                said = f"renamed_from {before!r} is no column of another version: {known}"
                yield _wrong(version, column.name, said, "Correct the name, or leave renamed_from out.")
            group = groups[column.name]
            for each in contracts.values():
                both = [one.name for one in each.columns if one.name in group]
                if len(both) > 1:
                    said = (
                        f"renamed_from {before!r} makes one column of {' and '.join(both)},"
                        f" which version {each.schema_version!r} has both"
                    )
                    yield _wrong(version, column.name, said, "Give what is new a name that was never used.")


def _wrong(version: str, column: str, said: str, remedy: str) -> WrongRename:
    where = f"contract {version!r} column {column} renamed_from"
    return WrongRename(version, column, InvalidInput(said, field=where, remedy=remedy))


def _groups(contracts: Iterable[Contract]) -> dict[str, frozenset[str]]:
    """Return for each name that has to do with a renaming all names that stand for the same column."""
    groups: dict[str, frozenset[str]] = {}
    for contract in contracts:
        for column in contract.columns:
            if column.renamed_from is not None:
                names = (column.name, column.renamed_from)
                merged = frozenset[str]().union(*(groups.get(name, {name}) for name in names))
                groups.update(dict.fromkeys(merged, merged))
    return groups
