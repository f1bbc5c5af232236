"""A contract as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sealbook.cli.table import cell, stdout_console
from sealbook.model.contract import Contract, Rule
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.views.contracts import ContractView


def print_contract(shown: ContractView) -> None:
    """Print a contract: its columns, its rules, its bounds."""
    contract = shown.contract
    console = stdout_console()
    heading = Text(f"{shown.source}/{contract.query_name} ", "bold")
    heading.append(f"schema_version {contract.schema_version}")
    heading.append(
        ", of new extractions" if shown.is_current else ", older", "green" if shown.is_current else "dim"
    )
    console.print(heading)
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for label, value in _facts(contract, shown):
        facts.add_row(Text(label, "dim"), cell(value))
    console.print(Padding(facts, (0, 0, 1, 2), expand=False))


def _facts(contract: Contract, shown: ContractView) -> Iterator[tuple[str, str]]:
    """Yield a label and a value for each line about a contract."""
    if shown.holds_from is not None or shown.holds_until is not None:
        yield "days", f"{shown.holds_from or ''} … {shown.holds_until or ''}".strip()
    for column in contract.columns:
        before = f", renamed from {column.renamed_from}" if column.renamed_from else ""
        yield "column", f"{column.name} {column.type}{' required' if column.required else ''}{before}"
    yield "primary key", ", ".join(contract.primary_key) or "none"
    yield "date column", contract.date_column or "none"
    for rule in contract.rules:
        yield "rule", f"{rule.name}: {rule.expression}{_terms(rule)}"
    yield "empty", "allowed" if contract.allow_empty else "not allowed"
    yield "extra columns", "not allowed" if contract.strict else "reported"
    bounds = contract.row_count
    for name in ("min", "max", "min_ratio", "max_ratio"):
        bound = getattr(bounds, name)
        if bound is not None:
            of = f" of the mean of the last {bounds.last} accepted runs" if name.endswith("ratio") else ""
            yield f"row count {name}", f"{bound:f}{of}" if of else f"{bound}"
    yield "contract hash", shown.contract_hash
    yield "validator", shown.validator_version


def _terms(rule: Rule) -> str:
    terms = [str(rule.severity)]
    terms += [f"up to {counted(rule.max_count, 'row')} may violate it"] if rule.max_count else []
    terms += [f"up to a share of {rule.max_share:f} may violate it"] if rule.max_share else []
    return f" ({'; '.join(terms)})"
