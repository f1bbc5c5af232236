"""Where a rule stands in its catalogue, for errors that name the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sealbook.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.config import SourceSettings
    from sealbook.validate.contracts import RuleProblem


def rule_errors(spark: SparkSession, source: SourceSettings) -> Iterator[ConfigError]:
    """Yield what is wrong with the rules of a source, each with its file, field and line. No job runs."""
    from sealbook.validate.contracts import analyse_rules

    for query in source.queries.values():
        for problem in analyse_rules(spark, query).problems:
            yield _located(problem, source)


def _located(problem: RuleProblem, source: SourceSettings) -> ConfigError:
    from sealbook.config.documents import read_document

    if source.catalogue is None:
        return ConfigError(str(problem))
    _, top = read_document(source.catalogue)
    said = f"rule {problem.rule.name} ({problem.rule.expression!r}): {problem.problem}"
    return top.below((*problem.path, "expression")).error(said)
