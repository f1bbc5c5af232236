"""A question about one customer costs what that customer has, however large the book is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import pytest
from sqlalchemy import event

from sealbook.ledger import Ledger
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.selection import Extent, Selection
from sealbook.model.universe import Account, Asset, AssetName, Universe, Upstream
from tests.support.ledger import KEY, OTHER, accept
from tests.support.pointers import load

DEMO = PartitionKey("demo", KEY.customer_id, "clicks", date(2025, 5, 5))
"""Another source's, of the same customer."""
STRANGER = PartitionKey("google_ads", "9999999999", "campaign_daily", date(2020, 1, 1))
CUSTOMER = Selection(customers=KEY.customer_id)

QUESTIONS: dict[str, Callable[[Ledger, Selection], object]] = {
    "states": lambda ledger, asked: [each.key for each in ledger.states(asked)],
    "judged": lambda ledger, asked: [key for key, _ in ledger.reader.judged_runs(asked)],
    "accepted": lambda ledger, asked: [key for key, *_ in ledger.reader.accepted_counts(asked)],
    "published": lambda ledger, asked: sorted(each.key for each in ledger.pointers.published(asked)),
    "pointers": lambda ledger, asked: sorted(each.key for each in ledger.pointers.pointers(asked)),
    "open pointers": lambda ledger, asked: [each.key for each in ledger.pointers.open_pointers(asked)],
    "records": lambda ledger, asked: [each.key for each in ledger.pointers.load_records(asked)],
}


@pytest.fixture
def published(ledger: Ledger) -> Ledger:
    """A ledger with two sources that have a customer in common, and a customer besides."""
    ledger.judge([accept(key) for key in (KEY, OTHER, DEMO, STRANGER)])
    load(ledger)
    return ledger


@contextmanager
def statements(ledger: Ledger) -> Iterator[list[tuple[str, Any]]]:
    """Give the questions that the ledger is asked in the block, as the database gets them."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if re.match("SELECT|WITH", statement):
            asked.append((statement, parameters))

    engine = ledger._database.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(engine, "before_cursor_execute", note)


def accesses(ledger: Ledger, statement: str, parameters: Any) -> Iterator[str]:
    """Yield how the database would reach the rows of each table, if it had many."""
    with ledger._database.read() as connection:
        if ledger._database.dialect == "sqlite":
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters):
                if re.match("(SEARCH|SCAN) (partition_stat|attempt|pointer|load_record)", row.detail):
                    yield row.detail
            return
        connection.exec_driver_sql("SET enable_seqscan = off")
        plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
        yield from (line for line in plan if "Index Cond" in line and "removed_version" not in line)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_customer_of_any_source_is_found(published: Ledger, question: str) -> None:
    """Also of sources and queries that are not named."""
    assert QUESTIONS[question](published, CUSTOMER) == [DEMO, KEY, OTHER]
    assert QUESTIONS[question](published, Selection(customers="nobody")) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_customer_is_sought_and_not_scanned_for(published: Ledger, question: str) -> None:
    """Rows are reached by source and customer, though no source is named."""
    with statements(published) as asked:
        QUESTIONS[question](published, CUSTOMER)
    [(statement, parameters)] = asked
    reached = list(accesses(published, statement, parameters))
    assert any(re.search(r"source.*customer_id", each) for each in reached), reached
    assert not [each for each in reached if each.startswith("SCAN")], reached


def test_the_facts_of_a_customer_are_sought(published: Ledger) -> None:
    """By the index of partitions, in each source."""
    with statements(published) as asked:
        found = {each.event.partition for each in published.reader.partition_log.feed(CUSTOMER)}
    assert found == {str(key) for key in (DEMO, KEY, OTHER)}
    statement, parameters = asked[-1]
    with published._database.read() as connection:
        explain = "EXPLAIN QUERY PLAN" if published._database.dialect == "sqlite" else "EXPLAIN"
        if explain == "EXPLAIN":
            connection.exec_driver_sql("SET enable_seqscan = off")
        plan = [str(row) for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)]
    reached = [each for each in plan if "run_event" in each and ("INDEX" in each or "Index" in each)]
    assert any("run_event_partition" in each for each in reached), plan
    assert not [each for each in plan if "SCAN run_event" in each or "Seq Scan on run_event" in each], plan


def test_the_status_of_a_partition_is_sought_by_its_series_and_day(published: Ledger) -> None:
    """And so is that of what it is made of: neither is looked for among all."""
    published.projector().catch_up()
    above, below = (AssetName(key.source, key.query_name) for key in (DEMO, OTHER))
    assets = {above: Asset(above), below: Asset(below, upstreams=(Upstream(above, -1, 0),))}
    accounts = {KEY.customer_id: Account(KEY.customer_id, first_day=KEY.logical_date)}
    universe = Universe(assets, {above.source: accounts, below.source: accounts})
    expectations = Expectations(universe, published.reader.now())
    with statements(published) as asked:
        published.reader.statuses.line(OTHER, expectations)
        published.reader.statuses.reasons(OTHER, expectations)
    reached = [
        each
        for statement, parameters in asked
        if "partition_status" in statement
        for each in accesses(published, statement, parameters)
        if "series_id" in each
    ]
    assert reached
    assert all("day" in each for each in reached), reached


def test_the_extent_of_what_is_known(published: Ledger) -> None:
    """Its customers, its first day and its last."""
    assert published.reader.extent() == Extent(
        frozenset({KEY.customer_id, STRANGER.customer_id}), STRANGER.logical_date, OTHER.logical_date
    )
    assert published.reader.extent(CUSTOMER) == Extent(
        frozenset({KEY.customer_id}), DEMO.logical_date, OTHER.logical_date
    )
    assert published.reader.extent(Selection(customers="nobody")) == Extent()
