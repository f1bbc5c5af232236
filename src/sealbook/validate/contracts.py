"""Contracts as the validator sees them: checked against Spark, and part of its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.contract import Contract, Query, Rule
from sealbook.validate.names import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKS_VERSION = "1"
"""Raised whenever a check of ours changes what it finds."""


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """What is wrong with a rule, and where it stands in the catalogue."""

    query: Query
    contract: Contract
    index: int
    problem: str

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.contract.rules[self.index]

    @property
    def path(self) -> tuple[str | int, ...]:
        """The steps to the rule in its catalogue file."""
        return ("queries", self.query.name, "contracts", self.contract.schema_version, "rules", self.index)

    def __str__(self) -> str:
        return (
            f"{self.query.source}/{self.query.name} contract {self.contract.schema_version!r},"
            f" rule {self.rule.name} ({self.rule.expression!r}): {self.problem}"
        )


def validator_version(contract: Contract) -> str:
    """Return what a verdict was made by: it changes with the contract, and with our own checks (R-VER-2)."""
    return sha256(f"{CHECKS_VERSION}|{contract.hash}".encode()).hexdigest()


def seal_checks_version() -> str:
    """Return what a verdict was made by that needed no contract, since the seal itself was wrong."""
    return sha256(f"{CHECKS_VERSION}|".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RuleAnalysis:
    """What Spark makes of the rules of a query: what is wrong, and what each schema_version's rules read."""

    problems: tuple[RuleProblem, ...]
    columns: Mapping[str, tuple[str, ...]]


def analyse_rules(spark: SparkSession, query: Query) -> RuleAnalysis:
    """Let Spark parse and resolve every rule of a query, in all its contracts. No job runs."""
    from sealbook.spark.expressions import ContractRows

    problems: list[RuleProblem] = []
    columns: dict[str, tuple[str, ...]] = {}
    for version, contract in query.contracts.items():
        rows = ContractRows(spark, contract.columns)
        read: set[str] = set()
        for index, rule in enumerate(contract.rules):
            if rule.name in CHECKS:
                problem = f"its name is that of a check which every verdict has: {', '.join(CHECKS)}"
                problems.append(RuleProblem(query, contract, index, problem))
            try:
                read.update(rows.columns_read_by(rule.expression))
            except InvalidInput as error:
                problems.append(RuleProblem(query, contract, index, str(error)))
        columns[version] = tuple(column.name for column in contract.columns if column.name in read)
    return RuleAnalysis(tuple(problems), columns)


def rule_columns(spark: SparkSession, query: Query) -> Mapping[str, tuple[str, ...]]:
    """Return what the rules of each schema_version read; ConfigError if any rule is wrong."""
    analysis = analyse_rules(spark, query)
    if analysis.problems:
        said = "; ".join(map(str, analysis.problems))
        raise ConfigError(said, remedy="`sealbook contract check` says where that is.")
    return analysis.columns
