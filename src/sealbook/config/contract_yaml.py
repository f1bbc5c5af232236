"""A contract as a catalogue has it: YAML to paste, which loads as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

from sealbook.model.contract import Column, Contract, RowCount


def contract_yaml(contract: Contract, notes: tuple[str, ...] = ()) -> str:
    """Return a contract as the entry of its version below `contracts`, with notes as comments above."""
    lines = [*(f"# {note}" for note in notes), f"{_text(contract.schema_version)}:"]
    lines += [f"  {line}" for line in _fields(contract)]
    return "\n".join([*lines, ""])


def _fields(contract: Contract) -> Iterator[str]:
    yield "columns:"
    for column in contract.columns:
        yield f"  {_plain(column.name)}: {{{', '.join(_column(column))}}}"
    if contract.primary_key:
        yield f"primary_key: [{', '.join(map(_plain, contract.primary_key))}]"
    if contract.date_column is not None:
        yield f"date_column: {_plain(contract.date_column)}"
    for name in ("allow_empty", "strict"):
        if getattr(contract, name):
            yield f"{name}: true"
    bounds = contract.row_count
    given = [name for name in RowCount.__slots__ if getattr(bounds, name) != getattr(RowCount(), name)]
    if given:
        yield f"row_count: {{{', '.join(f'{name}: {Decimal(getattr(bounds, name)):f}' for name in given)}}}"
    if contract.rules:
        yield "rules:"
    for rule in contract.rules:
        yield f"  - name: {_plain(rule.name)}"
        yield f"    expression: {_text(rule.expression)}"
        if rule.max_share:
            yield f"    max_share: {rule.max_share:f}"
        if rule.max_count:
            yield f"    max_count: {rule.max_count}"
        yield f"    severity: {rule.severity}"


def _column(column: Column) -> Iterator[str]:
    yield f"type: {_plain(column.type) if column.type.isalpha() else _text(column.type)}"
    if column.required:
        yield "required: true"
    if column.renamed_from is not None:
        yield f"renamed_from: {_plain(column.renamed_from)}"


_TAKEN = ("y", "yes", "n", "no", "on", "off", "true", "false", "null")
"""Names that YAML takes for something else."""


def _plain(name: str) -> str:
    return _text(name) if name in _TAKEN else str(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
