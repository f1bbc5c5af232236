"""Spark SQL expressions over the columns of a contract: what is wrong with one, and what it reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sealbook.errors import InvalidInput, first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    from sealbook.model.contract import Column

_PLACE = re.compile(r"line [0-9]+, pos [0-9]+")

_SUBQUERY = "it has a subquery"
_AGGREGATE = "it has an aggregate, such as a sum or a count"
_NOT_OF_ONE_ROW = {
    "INVALID_WHERE_CONDITION": _AGGREGATE,
    "UNSUPPORTED_GROUPING_EXPRESSION": _AGGREGATE,
    "WINDOW_FUNCTION": "it has a window function",
    "UNSUPPORTED_GENERATOR": "it makes several rows of one",
    "TABLE_OR_VIEW_NOT_FOUND": _SUBQUERY,
}
"""What Spark's conditions say of a rule that looks at more than its row, where Spark speaks of a query."""


class ContractRows:
    """Rows as a contract has them, on which expressions can be tried without any data."""

    def __init__(self, spark: SparkSession, columns: Sequence[Column]) -> None:
        from sealbook.spark.types import spark_type

        typed = (
            f"cast(null as {spark_type(column.type).simpleString()}) as `{column.name}`" for column in columns
        )
        self._rows = spark.sql(f"select {', '.join(typed)}")

    def columns_read_by(self, expression: str) -> set[str]:
        """Return the columns that a condition reads; InvalidInput says why it is none. No job runs."""
        from pyspark.errors import AnalysisException

        try:
            analysed = self._rows.where(expression)
            plan = analysed._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way tells what is read
        except AnalysisException as error:
            raise InvalidInput(_explained(error)) from error
        condition = plan.expressions().head()
        if not plan.subqueries().isEmpty():
            raise InvalidInput(f"{_SUBQUERY}: a rule is about one row alone")
        if not condition.deterministic():
            raise InvalidInput("it is not deterministic: the same row must always give the same answer")
        read = condition.references().toSeq()
        names = {str(read.apply(index).name()).lower() for index in range(read.size())}
        if not names:
            raise InvalidInput("it names no column")
        return names


def _explained(error: AnalysisException) -> str:
    """Say in our words what Spark found, by the name of the error's condition."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    for beginning, problem in _NOT_OF_ONE_ROW.items():
        if condition.startswith(beginning):
            return f"{problem}: a rule is about one row alone"
    if condition.startswith("UNRESOLVED_COLUMN"):
        return f"there is no column {_unquoted(parameters.get('objectName', ''))} in the contract"
    if condition == "UNRESOLVED_ROUTINE":
        return f"Spark has no function {_unquoted(parameters.get('routineName', ''))}"
    if condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
        return f"it gives {_unquoted(parameters.get('type', 'something'))}, not a boolean"
    if condition.startswith("PARSE_"):
        return f"it does not parse: {_first_sentence(error)}"
    return _first_sentence(error)


def _unquoted(name: str) -> str:
    return name.replace("`", "").replace('"', "")


def _first_sentence(error: AnalysisException) -> str:
    """Return Spark's message without its code in front and its context below."""
    first = first_line(error)
    message, _, position = (first.partition("] ")[2] or first).partition(" SQLSTATE:")
    place = _PLACE.search(position)
    return f"{message.strip().rstrip('.')}{f' ({place[0]})' if place else ''}"
