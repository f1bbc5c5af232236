"""The type that holds the values of several, where a column has another type in each version."""

from __future__ import annotations

from collections.abc import Iterable

from sealbook.model.column_types import MOST_DIGITS, ColumnType, DecimalType

# A type is wider than those whose every value it holds exactly. A double does not hold every bigint.
_WIDER_THAN = {
    ColumnType.BIGINT: {ColumnType.INT},
    ColumnType.DOUBLE: {ColumnType.INT, ColumnType.FLOAT},
    ColumnType.STRING: {ColumnType.JSON},
}
_DIGITS = {ColumnType.INT: 10, ColumnType.BIGINT: 19}


def common_type(types: Iterable[ColumnType]) -> ColumnType | None:
    """Return the narrowest type that holds every value of all these types; None if there is none.

    Nested types have one only if they are the same.
    """
    wanted = set(types)
    if len(wanted) == 1:
        return wanted.pop()
    if any(isinstance(each, DecimalType) for each in wanted):
        return _common_decimal(wanted)
    return next((wide for wide, held in _WIDER_THAN.items() if wanted <= {wide} | held), None)


def _common_decimal(types: Iterable[ColumnType]) -> ColumnType | None:
    """Return the decimal with as many digits before and behind the point as any of these numbers needs."""
    before = behind = 0
    for each in types:
        if isinstance(each, DecimalType):
            before, behind = max(before, each.precision - each.scale), max(behind, each.scale)
        elif each in _DIGITS:
            before = max(before, _DIGITS[each])
        else:
            return None
    fits = before + behind <= MOST_DIGITS
    return ColumnType(f"decimal({before + behind},{behind})") if fits else None
