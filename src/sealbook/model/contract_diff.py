"""What differs between two contracts, and what that means for whoever reads over both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import NamedTuple

from sealbook.model.contract import Column, Contract, RowCount, Rule
from sealbook.model.widening import common_type


class Change(NamedTuple):
    """One difference: of what, how it was and is (None: it is not there), and what follows from it."""

    field: str
    before: str | None
    after: str | None
    note: str = ""


def diff_contracts(before: Contract, after: Contract) -> list[Change]:
    """Return how a contract differs from another of its query, columns first."""
    return [
        *_columns(before, after),
        *_plain(before, after),
        *_rules(before, after),
        *_row_count(before.row_count, after.row_count),
    ]


def _columns(before: Contract, after: Contract) -> Iterator[Change]:
    old = {column.name: column for column in before.columns}
    names = {column.name: column.renamed_from or column.name for column in after.columns}
    for column in after.columns:
        was = old.get(column.name) or old.get(names[column.name])
        if was is None:
            yield Change(f"column {column.name}", None, _column(column), "null for rows of the other version")
            continue
        if was.name != column.name:
            yield Change(f"column {column.name}", was.name, column.name, "one column in reads: renamed_from")
        if was.type != column.type:
            common = common_type([was.type, column.type])
            note = f"read as {common}" if common else "cannot be read as one column: give it another name"
            yield Change(f"column {column.name}", str(was.type), str(column.type), note)
        if was.required != column.required:
            said = ("optional", "required")
            yield Change(f"column {column.name}", said[was.required], said[column.required])
    kept = {*names, *names.values()}
    for name, column in old.items():
        if name not in kept:
            yield Change(f"column {name}", _column(column), None, "null for rows of the other version")


def _plain(before: Contract, after: Contract) -> Iterator[Change]:
    for name in ("primary_key", "date_column", "allow_empty", "strict"):
        was, now = _shown(getattr(before, name)), _shown(getattr(after, name))
        if was != now:
            yield Change(name, was, now)


def _rules(before: Contract, after: Contract) -> Iterator[Change]:
    old, new = ({rule.name: _rule(rule) for rule in each.rules} for each in (before, after))
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield Change(f"rule {name}", old.get(name), new.get(name))


def _row_count(before: RowCount, after: RowCount) -> Iterator[Change]:
    for each in fields(RowCount):
        was, now = getattr(before, each.name), getattr(after, each.name)
        if was != now:
            yield Change(f"row_count {each.name}", _bound(was), _bound(now))


def _bound(bound: Decimal | int | None) -> str | None:
    return None if bound is None else f"{Decimal(bound):f}"


def _column(column: Column) -> str:
    return f"{column.type}{' required' if column.required else ''}"


def _rule(rule: Rule) -> str:
    terms = [f"max_share {rule.max_share:f}"] if rule.max_share else []
    terms += [f"max_count {rule.max_count}"] if rule.max_count else []
    terms += [str(rule.severity)] if rule.severity != "error" else []
    return f"{rule.expression} ({', '.join(terms)})" if terms else rule.expression


def _shown(value: object) -> str | None:
    match value:
        case None | ():
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value))
    return str(value)
