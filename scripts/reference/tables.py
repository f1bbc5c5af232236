"""The page of the ledger's tables."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from types import ModuleType

from sqlalchemy import CheckConstraint, Column, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql

from scripts.reference.docstrings import in_a_row
from sealbook import ledger
from sealbook.ledger.db.schema import HEAD
from sealbook.ledger.db.tables import metadata
from sealbook.ledger.roles import RIGHTS

_HEAD = f"""# Tables of the ledger

Every table of revision {HEAD}, as PostgreSQL has it. On SQLite numbers are integers, times are microseconds
since 1970 in UTC, and the rest is text or bytes. [The ledger](ledger.md) says what the tables mean together.

**These tables are not an interface.** Read by the [command line](cli.md) or [from Python](python.md): a later
version of Sealbook may keep the same facts otherwise, and carries a ledger over by its migrations. Nobody but
Sealbook writes to them. *Written by* names the [roles](ledger.md#roles-on-postgresql) that have the right to;
every role may read all but `override_log`.

"""
_WRITING = ("INSERT", "UPDATE", "DELETE")


def page() -> str:
    """Return the page."""
    tables = every_table()
    index = ["| table | what it holds |", "|---|---|"]
    index += [f"| [`{name}`](#{name}) | {_first_sentence(text)} |" for name, (_, text) in tables.items()]
    sections = [_section(table, text) for table, text in tables.values()]
    return _HEAD + "\n".join(index) + "\n\n" + "\n\n".join(sections) + "\n"


def every_table() -> dict[str, tuple[Table, str]]:
    """Return every table with what is said below its definition, by name."""
    found = {}
    for info in pkgutil.walk_packages(ledger.__path__, "sealbook.ledger."):
        if info.name.startswith("sealbook.ledger.db.migrations"):
            continue
        module = importlib.import_module(info.name)
        for variable, text in _docstrings(module).items():
            table = getattr(module, variable)
            if table.metadata is metadata:  # others are temporary
                found[table.name] = (table, text)
    return dict(sorted(found.items()))


def _docstrings(module: ModuleType) -> dict[str, str]:
    """Return what is said below each `name = Table(…)` of a module."""
    body = ast.parse(inspect.getsource(module)).body
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name = node.targets[0].id
        if not isinstance(getattr(module, name), Table) or not isinstance(node.value, ast.Call):
            continue
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)):
            raise ValueError(f"{module.__name__}.{name} has nothing said below it")
        found[name] = inspect.cleandoc(str(after.value.value))
    return found


def _section(table: Table, text: str) -> str:
    lines = [f"## {table.name}", "", text, "", "| column | type | |", "|---|---|---|"]
    lines += [_column(column) for column in table.columns]
    lines += ["", *_constraints(table)]
    writers = _writers(table.name)
    lines.append(f"- Written by: {', '.join(writers) if writers else 'the one who owns the tables'}.")
    return "\n".join(lines)


def _column(column: Column[object]) -> str:
    notes = "key" if column.primary_key else "" if column.nullable else "not null"
    kind = column.type.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    return f"| `{column.name}` | {kind.partition(' COLLATE')[0].lower()} | {notes} |"


def _constraints(table: Table) -> list[str]:
    unique = sorted(
        f"- Unique: {', '.join(f'`{column.name}`' for column in each.columns)}."
        for each in table.constraints
        if isinstance(each, UniqueConstraint)
    )
    checks = sorted(
        f"- Always: `{in_a_row(str(each.sqltext))}`."
        for each in table.constraints
        if isinstance(each, CheckConstraint)
    )
    return [*unique, *checks]


def _writers(table: str) -> list[str]:
    return [
        f"`{role}`"
        for role, rights in RIGHTS.items()
        if any(right.startswith(_WRITING) for right in rights.get(table, ()))
    ]


def _first_sentence(text: str) -> str:
    paragraph = in_a_row(text.split("\n\n")[0])
    return paragraph.split(". ")[0].rstrip(".") + "."
