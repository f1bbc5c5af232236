"""What the parser makes of any payload is what an independent reference makes of it, value by value."""

from __future__ import annotations

from datetime import date

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column
from sealbook.rows.offending import EXTRA_COLUMNS, JSON, REQUIRED, TYPES
from sealbook.rows.parser import RowParser
from tests.support.reference import ContractModel, exact, judge
from tests.support.reference_strategies import Payload, contracts, payloads

CASES = contracts().flatmap(
    lambda model: st.tuples(st.just(model), st.lists(payloads({"1": model}), min_size=1, max_size=3))
)


@given(CASES)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_lines_and_values_are_those_of_the_reference(case: tuple[ContractModel, list[Payload]]) -> None:
    """R-VER-1, R-VER-3: which lines fail which check, and every value of every row, among any neighbours."""
    model, several = case
    columns = [Column(name, ColumnType(kind), name in model.required) for name, kind in model.types.items()]
    block = RowParser(columns).parse([payload.data for payload in several])
    rows = [exact(row.values()) for row in block.table.to_pylist()]
    for payload, part in zip(several, block.parts, strict=True):
        expected = judge(model, payload.data, date(2026, 1, 1), 0, ())
        for check in (JSON, TYPES, REQUIRED, EXTRA_COLUMNS):
            found = part.offending.get(check)
            told = (True, 0, ()) if found is None else (False, found.count, tuple(found.lines))
            assert told == expected.found[check], check
        assert rows[: part.rows] == [exact(row.values()) for row in expected.rows]
        del rows[: part.rows]
    assert not rows
