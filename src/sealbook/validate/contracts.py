"""Contracts as the validator sees them: checked against Spark, and part of its version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, InvalidInput
from sealbook.ledger.contracts import ContractReader
from sealbook.model.contract import Contract, Query
from sealbook.validate.names import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKS_VERSION = "3"
"""Raised whenever a check of ours changes what it finds."""


def validator_version(contract: Contract) -> str:
    """Return what a verdict was made by: it changes with the contract, and with our own checks (R-VER-2)."""
    return sha256(f"{CHECKS_VERSION}|{contract.hash}".encode()).hexdigest()


def seal_checks_version() -> str:
    """Return what a verdict was made by that needed no contract, since the seal itself was wrong."""
    return sha256(f"{CHECKS_VERSION}|".encode()).hexdigest()


def rule_columns(spark: SparkSession, query: Query) -> Mapping[str, tuple[str, ...]]:
    """Return the columns that the rules of each schema_version read. No job runs.

    ConfigError, with file, field and line, for the first rule that is wrong.
    """
    columns = {}
    for version, contract in query.contracts.items():
        read: set[str] = set()
        for found in _analysed(spark, query, contract):
            if isinstance(found, ConfigError):
                raise found
            read.update(found)
        columns[version] = tuple(column.name for column in contract.columns if column.name in read)
    return columns


def rule_errors(spark: SparkSession, query: Query) -> Iterator[ConfigError]:
    """Yield all that is wrong with the rules of a query, each with its file, field and line. No job runs."""
    for contract in query.contracts.values():
        for found in _analysed(spark, query, contract):
            if isinstance(found, ConfigError):
                yield found


def column_errors(recorded: ContractReader, query: Query) -> Iterator[ConfigError]:
    """Yield an error for each contract whose columns were changed after runs had been accepted under it."""
    for before in recorded.reshaped(query):
        version = before.schema_version
        changes = ", ".join(_changes(before, query.contracts[version]))
        yield _error(
            query,
            (version, "columns"),
            f"runs were accepted under schema_version {version!r} with other columns: {changes}",
            remedy="Put them back. Other columns, or another primary_key, need a schema_version of their own,"
            " and days that are fetched under it; rules can be changed without one.",
        )


def _changes(before: Contract, after: Contract) -> Iterator[str]:
    """Name what differs in the shape of two contracts."""
    old, new = ({column.name: column.type for column in each.columns} for each in (before, after))
    for name in {**old, **new}:
        was, now = old.get(name, "absent"), new.get(name, "absent")
        if was != now:
            yield f"{name} was {was}, is {now}"
    if old == new and list(old) != list(new):
        yield f"the order was {', '.join(old)}"
    if before.primary_key != after.primary_key:
        yield f"the primary_key was {', '.join(before.primary_key) or 'none'}"
    if before.date_column != after.date_column:
        yield f"the date_column was {before.date_column or 'none'}"


def _analysed(spark: SparkSession, query: Query, contract: Contract) -> Iterator[set[str] | ConfigError]:
    """Let Spark parse and resolve each rule of a contract; yield what it reads, or what is wrong with it."""
    from sealbook.spark.expressions import ContractRows

    rows = ContractRows(spark, contract.columns)
    for index, rule in enumerate(contract.rules):
        if rule.name in CHECKS:
            problem = f"its name is that of a check which every verdict has: {', '.join(CHECKS)}"
            yield _located(query, contract, index, problem)
        try:
            yield rows.columns_read_by(rule.expression)
        except InvalidInput as error:
            yield _located(query, contract, index, str(error))


def _located(query: Query, contract: Contract, index: int, problem: str) -> ConfigError:
    """Say what is wrong with a rule, and where that stands: a query that was made in code has no file."""
    rule = contract.rules[index]
    said = f"rule {rule.name} ({rule.expression!r}): {problem}"
    return _error(query, (contract.schema_version, "rules", index, "expression"), said)


def _error(query: Query, below: tuple[str | int, ...], said: str, remedy: str | None = None) -> ConfigError:
    if query.file is None:
        return ConfigError(f"{query.source}/{query.name} contract {below[0]!r}, {said}", remedy=remedy)
    return error_in(query.file, ("queries", query.name, "contracts", *below), said, remedy=remedy)
