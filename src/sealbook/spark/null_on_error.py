"""Spark SQL expressions in which whatever cannot be computed is null, for its row alone.

Spark has two ways. The one it calls ANSI ends the job at the first row with an overflow or a division by
zero, and reads expressions by other rules for types. The other gives null for most, but lets whole numbers
that are too large wrap around: 2147483647 + 1 is less than zero. So expressions are read in the second way,
and what would wrap is told to be null, as Spark's own `try_add` does. That takes Spark's inner classes: no
function of SQL can say it of a whole expression.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL_ON_ERROR: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "false",
    # A part that two expressions share would be computed in front of both, where nothing guards it.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Overflow depends on the order: i + 2147483647 - 2147483647 is not i + 0.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
}
"""What expressions must be planned with."""

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_JSON_WHOLE = ("byte", "short", "integer", "long")
_ARITHMETIC = ("Add", "Subtract", "Multiply", "IntegralDivide", "Remainder", "Pmod")
_FUNCTIONS = ("UnaryMinus", "Abs", "Round", "BRound", "Ceil", "Floor")
"""They have a last argument that says whether to fail."""


def null_on_error(rows: DataFrame, expressions: Sequence[str]) -> list[Column]:
    """Return expressions over rows as columns. They are planned with `NULL_ON_ERROR`."""
    if not expressions:
        return []
    guard = _Guard(rows)
    analysed = rows.select(*map(F.expr, expressions))._jdf.queryExecution().analyzed().projectList()  # noqa: SLF001
    return [guard.column(_unnamed(analysed.apply(place))) for place in range(len(expressions))]


def _unnamed(expression: Any) -> Any:
    return expression.child() if _name(expression) == "Alias" else expression


def _name(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


class _Guard:
    """Rewrites expressions that Spark has analysed."""

    def __init__(self, rows: DataFrame) -> None:
        jvm: Any = rows.sparkSession._jvm  # noqa: SLF001 - expressions have no public face
        self._classes = jvm.org.apache.spark.sql.catalyst.expressions
        self._column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
        self._to_seq = jvm.PythonUtils.toSeq
        self._try = jvm.org.apache.spark.sql.catalyst.expressions.EvalMode.TRY()

    def column(self, expression: Any) -> Column:
        """Return an expression as a column; whatever still fails in it makes it null as a whole."""
        guarded = self._guarded(expression) if _can_wrap(expression) else expression
        return Column(self._column(self._classes.TryEval(guarded)))

    def _guarded(self, expression: Any) -> Any:
        children = expression.children()
        guarded = [self._guarded(children.apply(place)) for place in range(children.size())]
        if guarded:
            expression = expression.withNewChildren(self._to_seq(guarded))
        name = _name(expression)
        if name in _ARITHMETIC and _is_whole(expression):
            context = expression.evalContext()
            return self._made(expression, name, context.copy(self._try, context.allowDecimalPrecisionLoss()))
        if name in _FUNCTIONS and _is_whole(expression):
            return self._classes.TryEval(self._made(expression, name, True))
        if name == "Cast" and _is_whole(expression) and not _is_text(expression.child()):
            return self._made(expression, name, self._try)
        return expression

    def _made(self, expression: Any, name: str, last: object) -> Any:
        """Make an expression again with another last argument, which says what becomes of an error."""
        arguments = [expression.productElement(place) for place in range(expression.productArity() - 1)]
        return getattr(self._classes, name)(*arguments, last)


def _is_whole(expression: Any) -> bool:
    return expression.dataType().simpleString() in _WHOLE


def _is_text(expression: Any) -> bool:
    # Spark's own way with text is null for what is no number; the other way takes fewer texts.
    return bool(expression.dataType().simpleString() == "string")


def _can_wrap(expression: Any) -> bool:
    """Say whether any part may wrap around: asked in one call to Java, for most have none."""
    parts = json.loads(expression.toJSON())
    for part, child in zip(parts, [*parts[1:], {}], strict=True):
        name = part["class"].removeprefix(f"{_EXPRESSIONS}.")
        if name in (*_ARITHMETIC, *_FUNCTIONS):
            return True
        if name == "Cast" and part["dataType"] in _JSON_WHOLE:
            narrower = _JSON_WHOLE[: _JSON_WHOLE.index(part["dataType"])]
            if child.get("dataType") not in narrower:
                return True
    return False
