"""Many rows through SQLite's driver: what was written is what is read, whichever values are missing."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, Date, Integer, MetaData, Table, create_engine, select

from sealbook.ledger.db.bulk import insert_rows, update_rows, upsert_rows
from sealbook.ledger.db.row_statements import RowStatement
from sealbook.ledger.db.types import JsonDocument, RunIdText, StatusName, UtcTimestamp
from sealbook.model import RunId, Status

RUN_ID = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
TABLE = Table(
    "example",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("status", StatusName, nullable=False),
    Column("run_id", RunIdText),
    Column("size", BigInteger),
    Column("day", Date),
    Column("at", UtcTimestamp),
    Column("document", JsonDocument),
)
OPTIONAL = tuple(column.name for column in TABLE.c if column.nullable)

values = st.tuples(
    st.sampled_from(Status),
    st.none() | st.just(RUN_ID),
    st.none() | st.integers(0, 2**62),
    st.none() | st.dates(),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.dictionaries(st.text(st.characters(codec="ascii")), st.integers(0, 9)),
)


@given(st.lists(values, min_size=1, max_size=5), st.data())
def test_rows_come_back_as_they_were_written(written: list[tuple[object, ...]], data: st.DataObject) -> None:
    rows = [(number, *each) for number, each in enumerate(written)]
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        TABLE.create(connection)
        insert_rows(connection, TABLE, rows)
        assert connection.execute(select(TABLE)).all() == rows

        changed = [(number, *data.draw(values)) for number in range(len(rows))]
        update_rows(connection, TABLE, changed, OPTIONAL)
        expected = [(*old[:2], *new[2:]) for old, new in zip(rows, changed, strict=True)]
        assert connection.execute(select(TABLE)).all() == expected

        upserted = [(number, *data.draw(values)) for number in range(len(rows) + 1)]
        upsert_rows(connection, TABLE, upserted, ("status", *OPTIONAL))
        assert connection.execute(select(TABLE)).all() == upserted


def test_what_no_row_has_is_not_a_parameter() -> None:
    statement = RowStatement(TABLE, lambda each: TABLE.insert().values(each))

    absent, parameters = statement.prepare([(1, "pending", None, None, None, None, None)])
    assert parameters == [(1, "pending")]
    assert absent.count("NULL") == len(OPTIONAL)

    some, parameters = statement.prepare(
        [(1, "pending", None, 5, None, None, None), (2, "failed", None, None, None, None, None)]
    )
    assert parameters == [(1, "pending", 5), (2, "failed", None)]
    assert some.count("NULL") == len(OPTIONAL) - 1
