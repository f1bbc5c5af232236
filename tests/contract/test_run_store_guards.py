"""The database itself keeps the log append-only, and retention removes whole runs only (R-EVT-5)."""

from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from sealbook.errors import IllegalMove, InvalidInput, NotFound, Permanent
from sealbook.ledger import Ledger, grant_roles, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.tables import run_event
from sealbook.model.events import RunEvent
from sealbook.model.run_snapshot import RunStatus
from sealbook.testing.run_store_contract import OTHER_RUN, RUN, story
from tests.support.ledger import PostgresqlServer

OTHER_KEY = "'00000000-0000-0000-0000-000000000001'"


def _copy(**changes: str) -> str:
    """Return a query for the third event of the run with other values in some columns."""
    columns = ", ".join(changes.get(column.name, column.name) for column in run_event.c)
    run = f"run_number = (SELECT number FROM run_head WHERE run_id = '{RUN}')"
    return f"SELECT {columns} FROM run_event WHERE {run} AND run_seq = 3"


ON_BOTH = {
    "update": "UPDATE run_event SET event_data = 'x'",
    "update that changes nothing": "UPDATE run_event SET run_seq = run_seq",
    "delete one": "DELETE FROM run_event WHERE run_seq = 2",
    "delete all": "DELETE FROM run_event",
    "a number twice": f"INSERT INTO run_event {_copy(position='999', event_key=OTHER_KEY)}",
    "a key twice": f"INSERT INTO run_event {_copy(position='999', run_seq='999')}",
    "a position twice": f"INSERT INTO run_event {_copy(run_seq='999', event_key=OTHER_KEY)}",
    "rename a run": "UPDATE run_head SET run_id = 'another'",
    "forget a run": "DELETE FROM run_head",
    "retire a part": "INSERT INTO retired_run"
    " (run_id, last_seq, event_count, status, retired_at, actor, reason)"
    f" VALUES ('{RUN}', 3, 3, 'COMPLETED', '2026-01-01', 'me', 'why not')",
}
ON_SQLITE = {
    "replace by number": f"REPLACE INTO run_event {_copy(position='NULL', event_key=OTHER_KEY)}",
    "replace by key": f"REPLACE INTO run_event {_copy(position='NULL', run_seq='999')}",
    "replace a run": "REPLACE INTO run_head (number, run_id, last_seq) SELECT number, 'x', 0 FROM run_head",
    "give numbers again": "UPDATE run_head SET last_seq = 2",
    "replace by position": f"REPLACE INTO run_event {_copy(run_seq='999', event_key=OTHER_KEY)}",
}
ON_POSTGRESQL = {
    "truncate": "TRUNCATE run_event",
    "truncate runs": "TRUNCATE run_head",
    "upsert": f"INSERT INTO run_event {_copy()} ON CONFLICT (position) DO UPDATE SET event_type = 'Forged'",
}
TAMPERING = [
    *((backend, statement) for backend in ("sqlite", "postgresql") for statement in ON_BOTH.items()),
    *(("sqlite", statement) for statement in ON_SQLITE.items()),
    *(("postgresql", statement) for statement in ON_POSTGRESQL.items()),
]


REFUSALS = (
    "never changed|a run is retired as a whole|the run moved on|violates unique constraint|UNIQUE constraint"
)


def _is_refused(url: str, statement: str, saying: str | None = None) -> None:
    with (
        closing(Database(url)) as database,
        pytest.raises(DBAPIError, match=saying),
        database.engine.begin() as connection,
    ):
        connection.exec_driver_sql(statement)


@pytest.mark.parametrize(
    ("new_ledger_url", "statement"),
    [pytest.param(backend, each[1], id=f"{backend}: {each[0]}") for backend, each in TAMPERING],
    indirect=["new_ledger_url"],
)
def test_tampering_is_refused(ledger: Ledger, ledger_url: str, statement: str) -> None:
    """R-EVT-2, R-EVT-5: by trigger or constraint, even for the owner of the tables."""
    ledger.run_store.append_events(story())
    before = ledger.run_store.fetch_feed()
    _is_refused(ledger_url, statement, REFUSALS)
    assert ledger.run_store.fetch_feed() == before


AUDIT = {
    "rewrite": "UPDATE retired_run SET actor = 'nobody'",
    "forget": "DELETE FROM retired_run",
}


@pytest.mark.parametrize("statement", AUDIT.values(), ids=AUDIT.keys())
def test_who_retired_a_run_is_not_forgotten(ledger: Ledger, ledger_url: str, statement: str) -> None:
    """R-EVT-5: the audit of retention is append-only too."""
    ledger.run_store.append_events(story())
    ledger.run_store.retire_run(RUN, actor="olga", reason="older than a year")
    _is_refused(ledger_url, statement)


def test_a_finished_run_is_retired_as_a_whole(ledger: Ledger, ledger_url: str) -> None:
    """R-EVT-5: its events and snapshots go, others stay, and the audit says who, what and why."""
    store = ledger.run_store
    store.append_events(story() + story(OTHER_RUN))
    store.projector().catch_up()
    retired = store.retire_run(RUN, actor="olga", reason="older than a year")
    assert (retired.status, retired.event_count, retired.last_seq) == (RunStatus.COMPLETED, 8, 8)
    assert store.fetch_events(RUN) == []
    assert store.get_snapshot(RUN) is None
    assert [run.snapshot.run_id for run in store.list_runs()] == [OTHER_RUN]
    assert {each.event.run_id for each in store.fetch_feed()} == {OTHER_RUN}
    with closing(Database(ledger_url)) as database, database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT run_id, event_count, status, actor, reason FROM retired_run"
        )
        assert [tuple(row) for row in rows] == [(RUN, 8, "COMPLETED", "olga", "older than a year")]


def test_a_retired_run_never_reuses_numbers_or_positions(ledger: Ledger) -> None:
    """R-EVT-2, R-EVT-8: a late event of it comes after all that readers may have seen."""
    store = ledger.run_store
    store.append_events(story())
    last = store.fetch_feed()[-1].position
    store.retire_run(RUN, actor="olga", reason="old")
    assert store.append_event(RunEvent.new(RUN, "PartitionHidden", "load/x")).run_seq == 9
    (late,) = store.fetch_feed(last)
    assert late.position > last
    store.projector().catch_up()
    assert store.get_snapshot(RUN) == store.project_snapshot(RUN) == store.list_runs()[0].snapshot


def test_a_retired_run_stays_what_it_was(ledger: Ledger) -> None:
    """R-EVT-5, R-EVT-6: a late event goes on from how the run had ended, in the snapshot and in the list."""
    store = ledger.run_store
    store.append_events(story())
    store.retire_run(RUN, actor="olga", reason="old")
    assert store.get_snapshot(RUN) is None
    store.append_event(RunEvent.new(RUN, "PartitionHidden", "load/x"))
    snapshot = store.project_snapshot(RUN)
    assert (snapshot.status, snapshot.last_event_seq) == (RunStatus.COMPLETED, 9)
    assert snapshot.counters.partitions_hidden == 1
    assert snapshot.inconsistent == ()
    for act in (store.projector().catch_up, store.projector().rebuild):
        assert store.get_snapshot(RUN) == snapshot
        act()
        (listed,) = store.list_runs()
        assert (listed.snapshot, listed.stale) == (snapshot, False)
    late = RunEvent.new(RUN, "RunStarted", None, 2)
    store.append_event(late)
    store.projector().catch_up()
    snapshot = store.list_runs()[0].snapshot
    assert (snapshot.status, snapshot.inconsistent) == (RunStatus.COMPLETED, (late.event_id,))
    retired = store.retire_run(RUN, actor="olga", reason="again")
    assert (retired.status, retired.event_count, retired.last_seq) == (RunStatus.COMPLETED, 2, 10)
    assert store.list_runs() == []


def test_a_run_that_goes_on_is_not_retired(ledger: Ledger) -> None:
    """R-EVT-5: only finished runs, and only runs that there are."""
    store = ledger.run_store
    store.append_events(story()[:-1])
    with pytest.raises(IllegalMove, match="RUNNING"):
        store.retire_run(RUN, actor="olga", reason="old")
    with pytest.raises(NotFound):
        store.retire_run(OTHER_RUN, actor="olga", reason="old")
    with pytest.raises(InvalidInput, match="actor"):
        store.retire_run(RUN, actor="", reason="old")
    assert len(store.fetch_events(RUN)) == 7


def test_roles_append_by_the_authority_only(postgresql: PostgresqlServer) -> None:
    """R-STATE-2, R-EVT-5: an extractor appends and projects; it writes no row of the log by itself."""
    url = postgresql.create_ledger()
    database = str(make_url(url).database)
    prefix = f"{database}_"
    roles = grant_roles(url, prefix)
    users = {role: role.replace(prefix, f"{prefix}user_") for role in roles}
    for role, user in users.items():
        postgresql.execute(f"CREATE ROLE {user} LOGIN IN ROLE {role}")

    with open_ledger(postgresql.url(database, users[f"{prefix}extractor"])) as extractor:
        extractor.run_store.append_events(story())
        assert extractor.run_store.projector().catch_up().events == 0
        assert len(extractor.run_store.fetch_feed()) == 8
        with pytest.raises(Permanent, match="permission denied"):
            extractor.run_store.retire_run(RUN, actor="olga", reason="old")
    with open_ledger(postgresql.url(database, users[f"{prefix}consumer"])) as consumer:
        assert consumer.run_store.get_snapshot(RUN) is not None
        assert len(consumer.run_store.fetch_feed()) == 8
        with pytest.raises(Permanent, match="permission denied"):
            consumer.run_store.append_event(RunEvent.new(RUN, "Forged"))
    for user in users.values():
        for statement in (
            f"INSERT INTO run_event {_copy(position='999', run_seq='999')}",
            "UPDATE run_head SET last_seq = 1",
            "DELETE FROM run_event",
            "SELECT nextval('run_event_position_seq')",
        ):
            _is_refused(postgresql.url(database, user), statement, "permission denied")
    with open_ledger(postgresql.url(database, users[f"{prefix}control"])) as control:
        control.run_store.projector().rebuild()
        control.run_store.retire_run(RUN, actor="olga", reason="old")
        assert control.run_store.get_snapshot(RUN) is None


def test_what_is_told_again_of_a_retired_run_does_not_bring_it_back(ledger: Ledger) -> None:
    """R-EVT-5: its keys are gone with its events, so it is stored anew; the run stays what it was."""
    store = ledger.run_store
    store.append_events(story())
    store.retire_run(RUN, actor="olga", reason="old")
    store.append_events(story())
    store.projector().catch_up()
    assert store.project_snapshot(RUN).status is RunStatus.COMPLETED
    assert [run.snapshot.status for run in store.list_runs()] == [RunStatus.COMPLETED]
