"""R-STATE-2: on PostgreSQL only the loader publishes, and it can do all its work; readers can do theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import delete, make_url

from sealbook.errors import Permanent
from sealbook.ledger import Ledger, grant_roles, open_ledger
from sealbook.ledger.reader import open_ledger_reader
from sealbook.ledger.roles import RIGHTS
from sealbook.ledger.states.tables import partition_state
from sealbook.model.artifacts import Condemned
from sealbook.status.verify import verify_ledger
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id
from tests.support.pointers import SINCE, UNTIL, artifact, load, seen, staged

UrlAs = Callable[[str], str]


@pytest.fixture
def url_as(postgresql: PostgresqlServer) -> Iterator[UrlAs]:
    """A ledger with something published, and its URL for a user in each role."""
    url, prefix = postgresql.create_ledger(), f"p{uuid4().hex[:12]}_"
    grant_roles(url, prefix)
    with open_ledger(url) as ledger:
        ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
        load(ledger)
        ledger.pointers.create_cut("now")
        ledger.judge([accept(KEY, 2)])
    for role in RIGHTS:
        postgresql.execute(f"CREATE ROLE user_{prefix}{role} LOGIN IN ROLE {prefix}{role}")
    yield lambda role: postgresql.url(str(make_url(url).database), f"user_{prefix}{role}")
    with psycopg.connect(url, autocommit=True) as admin:
        for role in RIGHTS:
            admin.execute(f"DROP ROLE user_{prefix}{role}".encode())
            admin.execute(f"DROP OWNED BY {prefix}{role}".encode())
            admin.execute(f"DROP ROLE {prefix}{role}".encode())


def test_a_loader_does_all_of_its_work(url_as: UrlAs) -> None:
    """It plans, loads, hides, cuts and cleans up without a right on states beyond reading them."""
    with open_ledger(url_as("loader")) as ledger:
        assert load(ledger).replaced == (KEY,)
        with open_ledger(url_as("validator")) as validator:
            validator.judge([reject(OTHER, 1, again="r")])
        assert ledger.pointers.hide() == [OTHER]
        ledger.pointers.create_cut("later")
        ledger.pointers.drop_cut("now")
        unneeded = list(ledger.pointers.removable(timedelta(0)))
        condemned = ledger.pointers.condemn(unneeded, timedelta(0))
        assert [each.artifact for each in condemned] == [artifact(KEY, 1), artifact(OTHER, 1)]
        ledger.pointers.forget(condemned)
        ledger.pointers.refile([staged(KEY, 2, copy=1)])
        [stored] = ledger.pointers.stored_artifacts()
        assert (stored.artifact, stored.copy) == (artifact(KEY, 2), 1)
        assert len(list(ledger.pointers.load_records())) == 3
        assert list(ledger.pointers.differences()) == []
        with pytest.raises(Permanent, match="permission denied"):
            ledger.judge([accept(KEY, 3)])


def test_a_consumer_reads_and_no_more(url_as: UrlAs) -> None:
    """It sees what is published, at a cut too, with coverage and load records."""
    with open_ledger(url_as("consumer")) as ledger:
        pointers = ledger.pointers
        assert seen(ledger) == seen(ledger, cut="now") == {KEY: run_id(1), OTHER: run_id(1)}
        universe: Any = {"source": KEY.source, "customers": [KEY.customer_id], "since": SINCE, "until": UNTIL}
        assert [each.kind for each in pointers.coverage(KEY.query_name, **universe)] == [
            "behind",
            "published",
        ]
        assert [each.key for each in pointers.load_records()] == [KEY, OTHER]
        assert len(pointers.history(KEY)) == len(pointers.cuts()) == 1


WRITES: dict[str, Callable[[Ledger], object]] = {
    "swap": lambda ledger: ledger.pointers.swap([staged(KEY, 2)]),
    "hide": lambda ledger: ledger.pointers.hide(),
    "create a cut": lambda ledger: ledger.pointers.create_cut(),
    "drop a cut": lambda ledger: ledger.pointers.drop_cut("now"),
    "condemn": lambda ledger: ledger.pointers.condemn([artifact(KEY, 1)], timedelta(0)),
    "forget": lambda ledger: ledger.pointers.forget([Condemned(artifact(KEY, 1), 0)]),
}
CUTS = ("create a cut", "drop a cut")


def test_the_reading_side_needs_the_consumer_role_and_no_more(url_as: UrlAs) -> None:
    """It opens, plans and reads as a consumer; whoever it is opened as, the database refuses its writes."""
    for role in ("consumer", "control"):
        with open_ledger_reader(url_as(role)) as reader:
            assert reader.state(KEY).current_run_id == run_id(2)
            assert len(list(reader.states())) == len(list(reader.pointers.open_pointers())) == 2
            assert [item.key for item in reader.pointers.plan()] == [KEY]
            assert reader.pointers.version() == 2
            assert len(reader.run_store.fetch_feed()) == 5
            assert reader.run_store.get_snapshot(run_id(1)) is not None
            assert reader.contracts.history() == []
            assert list(verify_ledger(reader)) == []
            with pytest.raises(Permanent, match="read-only"):
                reader._database.write(lambda connection: connection.execute(delete(partition_state)))


def test_nobody_else_publishes(url_as: UrlAs) -> None:
    """A validator judges, an extractor extracts, a consumer reads, control decides; none sets a pointer."""
    for role in RIGHTS.keys() - {"loader"}:
        with open_ledger(url_as(role)) as ledger:
            for name, write in WRITES.items():
                if role == "control" and name in CUTS:  # which operators pin
                    continue
                with pytest.raises(Permanent, match="permission denied"):
                    write(ledger)


def test_what_others_decide_gets_into_the_plan(url_as: UrlAs) -> None:
    """The note of a changed authority is written with the rights of whoever changes it."""
    with open_ledger(url_as("control")) as control, open_ledger(url_as("loader")) as loader:
        with open_ledger(url_as("validator")) as validator:
            validator.judge([accept(KEY, 3)])
        assert load(loader).replaced == (KEY,)
        control.rollback(KEY, run_id(2), actor="ann", reason="the third is worse")
        assert load(loader).loaded == (KEY,)  # it was not staged yet, so the rollback hid the third
        control.rollback(KEY, run_id(3), actor="ann", reason="it is not")
        assert load(loader).loaded == load(loader).replaced == ()  # the pointer went back with it


def test_a_consumer_keeps_its_token_and_forgets_nobody(url_as: UrlAs) -> None:
    """R-CON-5: it follows changes and says how far it has come; only control takes others off the list."""
    with open_ledger(url_as("consumer")) as ledger:
        found = ledger.pointers.changes()
        assert {each.key for each in found.items} == {KEY, OTHER}
        kept = ledger.pointers.advance("reports", KEY.source, KEY.query_name, found.token)
        assert ledger.pointers.advance("reports", KEY.source, KEY.query_name, "0").version < kept.version
        assert {each.name for each in ledger.pointers.holders(KEY)} == {"now"}
        with pytest.raises(Permanent, match="consumer"):
            ledger.pointers.drop_consumer("reports")
    with open_ledger(url_as("validator")) as ledger, pytest.raises(Permanent, match="consumer"):
        ledger.pointers.advance("reports", KEY.source, KEY.query_name, "0")
    with open_ledger(url_as("control")) as ledger:
        assert ledger.pointers.drop_consumer("reports") == 1
