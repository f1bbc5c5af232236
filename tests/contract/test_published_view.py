"""The view `published_partition` says what readers get (R-CON-1, R-WH-5), for tools that ask the database."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from sqlalchemy import text

from sealbook.ledger import Ledger
from sealbook.ledger.pointers.view import COLUMNS, NAME
from tests.support.ledger import accept, reject
from tests.support.published import key, publish


def viewed(ledger: Ledger) -> list[tuple[str, str, str, bool]]:
    """Return what the view has: customer, day, run and whether it is behind."""
    with ledger._database.read() as connection:
        rows = connection.execute(text(f"SELECT {', '.join(COLUMNS)} FROM {NAME}")).mappings().all()
    return sorted(
        (row["customer_id"], str(row["logical_date"]), row["run_id"], bool(row["behind"])) for row in rows
    )


def read(ledger: Ledger) -> list[tuple[str, str, str, bool]]:
    """Return the same of what readers get."""
    return sorted(
        (each.customer_id, str(each.logical_date), each.run_id, each.behind)
        for each in ledger.pointers.published()
    )


def test_it_has_what_readers_get_and_nothing_else(ledger: Ledger, tmp_path: Path) -> None:
    publish(ledger, tmp_path, [key(customer, day) for customer in range(3) for day in range(3)])
    assert len(viewed(ledger)) == 9
    ledger.judge([reject(key(0, 0), 1, again="demoted"), accept(key(1, 1), 2), accept(key(2, 2), 2)])
    ledger.judge([reject(key(2, 2), 2, again="demoted"), accept(key(2, 2), 3)])
    ledger.judge([reject(key(2, 2), 1, again="the run that is behind is bad, too")])
    assert viewed(ledger) == read(ledger)
    assert [each for each in viewed(ledger) if each[3]] == [("c1", "2026-01-02", accept(run=1).run_id, True)]
    assert ("c2", "2026-01-03") not in {each[:2] for each in viewed(ledger)}


def test_the_freshest_of_each_query(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.pointers.freshest() == []
    publish(ledger, tmp_path, [key(0, 0), key(1, 4)])
    before = ledger.pointers.freshest()
    publish(ledger, tmp_path, [key(0, 2, "clicks")], run=2)
    publish(ledger, tmp_path, [key(0, 0)], run=3)
    clicks, campaigns = sorted(ledger.pointers.freshest(), key=lambda each: each.query_name, reverse=True)
    assert (clicks.partitions, clicks.newest_day) == (1, date(2026, 1, 3))
    assert (campaigns.partitions, campaigns.newest_day) == (2, date(2026, 1, 5))
    assert campaigns.published_at > before[0].published_at
    times = {each.key: each.loaded_at for each in ledger.pointers.published()}
    assert abs((campaigns.published_at - times[key(0, 0)]).total_seconds()) < 60
