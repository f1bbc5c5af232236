"""Contracts by their hash, and when each came into force, on both databases (R-WH-7)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest

from sealbook.errors import NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query, Rule
from sealbook.model.staleness import CodeInForce, StaleCode, stale_reasons
from sealbook.model.versions import Term
from sealbook.validate.contracts import column_errors
from tests.support.ledger import accept, reject

CONTRACT = Contract("clicks", "1", (Column("n", ColumnType.INT),), primary_key=("n",))
STRICTER = replace(CONTRACT, rules=(Rule("positive", "n > 0", max_share=Decimal("0.29")),))
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def query(*contracts: Contract) -> Query:
    return Query("demo", "clicks", "select", "1", {each.schema_version: each for each in contracts})


def test_a_contract_is_in_force_from_when_it_is_first_used(ledger_url: str) -> None:
    """Using it again changes nothing; changed back it is in force once more, and kept once."""
    ticks = count()
    with open_ledger(ledger_url, clock=lambda: NOW + timedelta(seconds=next(ticks))) as ledger:
        assert [each.hash for each in ledger.contracts.put_in_force([query(CONTRACT)])] == [CONTRACT.hash]
        assert ledger.contracts.put_in_force([query(CONTRACT)]) == []
        ledger.contracts.put_in_force([query(STRICTER)])
        ledger.contracts.put_in_force([query(CONTRACT)])
        reader = ledger.reader.contracts
        history = reader.history("demo", "clicks")
        assert [each.hash for each in history] == [CONTRACT.hash, STRICTER.hash, CONTRACT.hash]
        assert [each.since for each in history] == sorted(each.since for each in history)
        for contract in (CONTRACT, STRICTER):
            assert reader.contract(contract.hash) == contract
            assert reader.contract(contract.hash).hash == contract.hash
        assert reader.history("other") == []
        with pytest.raises(NotFound, match="feed"):
            reader.contract("feed")


def test_what_a_version_accepted_that_holds_for_earlier_days_is_not_out_of_date(ledger_url: str) -> None:
    """R-VER-7, R-PST-3: versions that hold for some days each are all in force."""
    second = replace(CONTRACT, schema_version="2")
    terms = {"1": Term(), "2": Term(date(2026, 3, 1))}
    dated = replace(query(second, CONTRACT), schema_version="2", terms=terms)
    given_up = replace(dated, terms={})
    with open_ledger(ledger_url) as ledger:
        ledger.contracts.put_in_force([dated])
        [code] = ledger.reader.contracts.in_force([dated]).values()
        assert (code.contract_hash, code.also) == (second.hash, frozenset({CONTRACT.hash}))
        [code] = ledger.reader.contracts.in_force([given_up]).values()
        assert (code.contract_hash, code.also) == (second.hash, frozenset())
    at = datetime(2026, 3, 2, tzinfo=UTC)
    both = CodeInForce(second.hash, at, frozenset({CONTRACT.hash}))
    assert stale_reasons(at, CONTRACT.hash, code=both) == []
    assert [each.code for each in stale_reasons(at, STRICTER.hash, code=both)] == [StaleCode.CODE_CHANGED]


def test_many_validators_at_once_put_a_contract_in_force_once(ledger_url: str) -> None:
    """None of them fails, and the history has it once."""
    for round_ in range(5):
        changed = replace(CONTRACT, rules=(Rule("below", f"n < {round_}"),))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: _put(ledger_url, query(changed)), range(8)))  # noqa: B023 - used at once
    with open_ledger(ledger_url) as ledger:
        assert len(ledger.reader.contracts.history()) == 5


def _put(url: str, used: Query) -> None:
    with open_ledger(url) as ledger:
        ledger.contracts.put_in_force([used])


def test_versions_are_apart(ledger: Ledger) -> None:
    second = replace(CONTRACT, schema_version="2")
    ledger.contracts.put_in_force([query(CONTRACT, second)])
    assert [each.schema_version for each in ledger.reader.contracts.history()] == ["1", "2"]


def test_the_contract_in_force_is_the_last_whatever_the_clock_says(ledger_url: str) -> None:
    """R-STATE-11: a machine whose clock is days behind puts one into force all the same."""
    with open_ledger(ledger_url, clock=lambda: NOW) as ledger:
        ledger.contracts.put_in_force([query(CONTRACT)])
    with open_ledger(ledger_url, clock=lambda: NOW - timedelta(days=8)) as behind:
        behind.contracts.put_in_force([query(STRICTER)])
        assert behind.contracts.put_in_force([query(STRICTER)]) == []
        history = behind.reader.contracts.history("demo", "clicks")
        assert [each.hash for each in history] == [CONTRACT.hash, STRICTER.hash]


RESHAPED = [
    replace(CONTRACT, columns=(Column("n", ColumnType.BIGINT),)),
    replace(CONTRACT, columns=(Column("n", ColumnType.INT), Column("m", ColumnType.INT))),
    replace(CONTRACT, columns=(Column("m", ColumnType.INT),), primary_key=()),
    replace(CONTRACT, primary_key=()),
]


@pytest.mark.parametrize("edited", RESHAPED)
def test_columns_are_fixed_once_a_run_is_accepted_under_them(ledger: Ledger, edited: Contract) -> None:
    """R-WH-7: rules may change; for columns, before an acceptance there is nothing that they could harm."""
    key = PartitionKey("demo", "acme", "clicks", date(2026, 1, 1))
    ledger.contracts.put_in_force([query(CONTRACT)])
    ledger.judge([reject(key, 1)])
    recorded = ledger.reader.contracts
    assert recorded.reshaped(query(edited)) == []
    assert recorded.as_recorded(query(edited)) == query(edited)

    ledger.judge([accept(key, 2)])
    assert recorded.reshaped(query(edited)) == [CONTRACT]
    assert recorded.as_recorded(query(edited)).contracts == {"1": CONTRACT}
    assert recorded.reshaped(query(STRICTER)) == []
    assert recorded.as_recorded(query(STRICTER)) == query(STRICTER)
    [error] = column_errors(recorded, query(edited))
    assert "runs were accepted under schema_version '1' with other columns" in str(error)
    assert "schema_version of their own" in str(error.remedy)

    newer = replace(edited, schema_version="2")
    assert recorded.reshaped(query(CONTRACT, newer)) == []
    alone = Query("demo", "clicks", "select", "2", {"2": newer})
    assert recorded.reshaped(alone) == []
    assert recorded.as_recorded(alone).contracts == {
        "2": newer,
        "1": CONTRACT,
    }
