"""Migrations: from empty they make the declared tables; what is not at HEAD is refused or migrated."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from sealbook import ledger
from sealbook.errors import ConfigError, NotMigrated, Permanent
from sealbook.ledger import migrate, open_ledger
from sealbook.ledger.db import schema
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import json_text
from sealbook.model import Check, PartitionKey, RunId, Severity
from sealbook.model.artifacts import FIRST_FORMAT, Artifact
from sealbook.model.events import RunEvent
from sealbook.model.partition_events import PartitionSealed
from sealbook.model.wire import dump_json
from sealbook.warehouse.layout import location_of, part_paths
from tests.support.ledger import BACKENDS, KEY, PostgresqlServer, accept, run_id

for _module in walk_packages(ledger.__path__, "sealbook.ledger."):
    if _module.name.endswith("tables"):
        import_module(_module.name)  # whatever declares tables is in the metadata now

V1_COLUMNS = [
    "source",
    "customer_id",
    "query_name",
    "logical_date",
    "status",
    "current_run_id",
    "schema_version",
    "record_count",
    "updated_at",
    "error_message",
    "attempt_count",
]


@pytest.fixture(params=BACKENDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with no tables at all."""
    if request.param == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        return server.create_database()
    return f"sqlite:///{tmp_path}/empty.db"


@pytest.fixture
def migrated(empty_url: str) -> Iterator[Database]:
    """A database that was migrated from empty."""
    assert migrate(empty_url) == (None, schema.HEAD)
    with closing(Database(empty_url)) as database:
        yield database


def test_head_is_the_newest_script() -> None:
    """The constant saves an import of Alembic at each start; it must not go stale."""
    config = Config()
    config.set_main_option("script_location", str(schema._MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [schema.HEAD]
    assert {script.revision for script in scripts.walk_revisions()} == schema.known_revisions()


def test_migrations_end_in_the_declared_tables(migrated: Database) -> None:
    """Alembic finds nothing that it would change: tables, columns, types, indexes."""
    with migrated.read() as connection:
        options = {"compare_type": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


_POSTGRESQL_CATALOGUE = {
    "columns": """
        SELECT table_name, ordinal_position, column_name, data_type, collation_name, is_nullable,
               column_default, is_identity, identity_generation
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
}


def catalogue(database: Database) -> dict[str, list[Any]]:
    """Return what the database itself says of our tables: CHECKs, partial indexes and collations included."""
    with database.read() as connection:
        if database.dialect == "postgresql":
            found = {
                what: [tuple(row) for row in connection.execute(text(query))]
                for what, query in _POSTGRESQL_CATALOGUE.items()
            }
        else:
            query = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type IN ('table', 'index')"
            found = {"sql": [(*row[:2], _normal(row[2])) for row in connection.execute(text(query))]}
    return {what: sorted(row for row in rows if row[0] in metadata.tables) for what, rows in found.items()}


def _normal(sql: str | None) -> list[str]:
    """Return the parts of a statement in any order: a constraint may be said before or after another."""
    words = re.sub(r"\s+", " ", (sql or "").replace('"', ""))
    return sorted(part.strip(" ()") for part in re.split(r",(?![^(]*\))", words))


def test_the_catalogue_is_that_of_the_declared_tables(
    migrated: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """CHECK constraints, partial indexes, defaults and collations too, which Alembic does not compare."""
    if migrated.dialect == "postgresql":
        url = request.getfixturevalue("postgresql").create_database()
    else:
        url = f"sqlite:///{tmp_path}/declared.db"
    with closing(Database(url)) as declared:
        declared.write(metadata.create_all)
        assert catalogue(migrated) == catalogue(declared)
    assert all(catalogue(migrated).values())


def test_the_catalogue_sees_a_difference(migrated: Database) -> None:
    """The comparison above would notice a lost constraint or index."""
    before = catalogue(migrated)
    migrated.write(lambda connection: connection.execute(text("DROP INDEX attempt_once_a_run")))
    assert catalogue(migrated) != before


def test_partition_state_has_exactly_the_v1_columns(migrated: Database) -> None:
    """In the order of the contract, with its primary key."""
    with migrated.read() as connection:
        assert list(connection.execute(text("SELECT * FROM partition_state")).keys()) == V1_COLUMNS
    assert [column.name for column in metadata.tables["partition_state"].c] == V1_COLUMNS
    assert [column.name for column in metadata.tables["partition_state"].primary_key] == V1_COLUMNS[:4]


GOOD_ROW = {
    "source": "'s'",
    "customer_id": "'c'",
    "query_name": "'q'",
    "logical_date": "'2026-01-01'",
    "status": "'pending'",
    "current_run_id": "NULL",
    "schema_version": "NULL",
    "record_count": "NULL",
    "updated_at": "CURRENT_TIMESTAMP",
    "error_message": "NULL",
    "attempt_count": "0",
}
_NAMED = {"current_run_id": "'r'", "schema_version": "'1'", "record_count": "1"}
BROKEN_ROWS = {
    "a status that does not exist": {"status": "'done'"},
    "no status": {"status": "NULL"},
    "a success without a run": {"status": "'success'"},
    "a success without a count": {**_NAMED, "status": "'success'", "record_count": "NULL"},
    "a success with an error": {**_NAMED, "status": "'success'", "error_message": "'e'"},
    "a failure without an error": {"status": "'failed'"},
    "fewer attempts than none": {"attempt_count": "-1"},
}


def _insert(database: Database, row: dict[str, str]) -> None:
    statement = f"INSERT INTO partition_state ({', '.join(row)}) VALUES ({', '.join(row.values())})"
    database.write(lambda connection: connection.execute(text(statement)))


def test_the_database_refuses_rows_that_no_move_makes(migrated: Database) -> None:
    """The invariants live in the database: whoever writes past our code meets them."""
    for what, changes in BROKEN_ROWS.items():
        with pytest.raises(Permanent, match="constraint"):
            _insert(migrated, GOOD_ROW | changes)
        with migrated.read() as connection:
            assert connection.execute(text("SELECT * FROM partition_state")).all() == [], what
    _insert(migrated, GOOD_ROW)


def test_migrating_again_does_nothing(migrated: Database, empty_url: str) -> None:
    before = catalogue(migrated)
    assert migrate(empty_url) == (schema.HEAD, schema.HEAD)
    with open_ledger(empty_url, migrate=True) as book:
        book.judge([accept(KEY)])
    with open_ledger(empty_url, migrate=True) as book:
        assert book.state(KEY).attempt_count == 1
    assert catalogue(migrated) == before


_OLD_EVENT = """
    INSERT INTO run_event (position, run_id, run_seq, event_id, event_type, plan_version, idempotency_key,
        event_data, emitted_at, persisted_at)
    VALUES (:seq, 'r', :seq, :key, 'PartitionSealed', '1', :key, :data,
        '2026-01-01T00:00:00.000000+00:00', '2026-01-01T00:00:00.000000+00:00')
"""


def test_events_of_0003_get_their_partition(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book with events is migrated: those that say their partition name it; the log stays guarded."""
    data = ['{"partition":"demo/Acme/q/2026-01-01"}', '{"partition":7}', "{}", '{"partition":null}']
    with monkeypatch.context() as past:
        past.setattr(schema, "HEAD", "0003")
        migrate(empty_url)
    with closing(Database(empty_url)) as database:

        def fill(connection: Connection) -> None:
            for seq, each in enumerate(data, 1):
                connection.execute(text(_OLD_EVENT), {"seq": seq, "key": f"k{seq}", "data": each})
            connection.execute(
                text(
                    "INSERT INTO projection (name, active, position, holder, held_until)"
                    " VALUES ('runs', true, 2, 'gone', '2026-01-01T00:00:00.000000+00:00')"
                )
            )
            if connection.dialect.name == "postgresql":
                connection.execute(text("INSERT INTO run_head VALUES ('r', 4)"))
                connection.execute(text("SELECT setval('run_event_position_seq', 4)"))

        database.write(fill)
        assert migrate(empty_url) == ("0003", schema.HEAD)
        with open_ledger(empty_url) as book:
            partitions = [event.partition for event in book.run_store.fetch_events("r")]
            assert partitions == ["demo/Acme/q/2026-01-01", None, None, None]
            assert book.run_store.append_event(RunEvent.new("r", "RunStarted")).run_seq == 5
            assert book.run_store.projector().catch_up().events == 0
            assert book.run_store.list_runs()[0].snapshot.counters.partitions_sealed == 4
        with pytest.raises(Permanent, match="never changed"):
            database.write(lambda c: c.execute(text("UPDATE run_event SET partition = 'x'")))


_TIMES = (
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 6, 30, 59, 123_456, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
_RUN = str(run_id(1))
_OLD_LOG = [
    event.stored(seq, _TIMES[seq % 2])
    for seq, event in enumerate(
        [
            RunEvent.new(_RUN, "RunStarted", emitted_at=_TIMES[2]),
            PartitionSealed(
                key=KEY,
                run_id=run_id(1),
                schema_version="1",
                record_count=7,
                payload_bytes=31_234,
                payload_sha256="ab" * 32,
                query_hash="not a digest",
                extracted_at=_TIMES[1],
            ).to_event(),
            RunEvent.new(_RUN, "Big", "a step", 3, "2", event_data=[2**100, 0.0, 1e23, None, {"bytes": {}}]),
            RunEvent.from_dict(
                {
                    "runId": _RUN,
                    "eventType": "StepStarted",
                    "idempotencyKey": "their own",
                    "eventId": "7f2c1a90-4a53-5d1e-8c3b-9e0f6d2b1a77",
                    "engineRunRef": {},
                    "engineAttemptId": "5",
                    "adapterVersion": "9",
                    "partition": "any text",
                    "eventData": None,
                    "further": {"members": [1]},
                }
            ),
        ],
        1,
    )
]
_OLD_CHECKS = (Check("json", passed=True), Check("rule", False, 2, (1, 7), "two", Severity.WARN))


def _insert_old(connection: Connection, table: str, values: dict[str, Any]) -> None:
    """Insert a row as revision 0004 kept it: times of SQLite as text, JSON as text."""
    stored = {
        name: value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for name, value in values.items()
    }
    marks = (f":{name}" for name in stored)
    connection.execute(text(f"INSERT INTO {table} ({', '.join(stored)}) VALUES ({', '.join(marks)})"), stored)


def _fill_0004(connection: Connection) -> None:
    for position, event in enumerate(_OLD_LOG, 11):
        values = {each.name: getattr(event, each.name) for each in fields(event)}
        for name in ("event_data", "engine_run_ref", "extra"):
            values[name] = None if values[name] in (None, {}) else dump_json(values[name])
        values["event_data"] = dump_json(event.event_data)
        if event.engine_run_ref is not None:
            values["engine_run_ref"] = dump_json(event.engine_run_ref)
        _insert_old(connection, "run_event", {"position": position, **values})
    if connection.dialect.name == "postgresql":
        connection.execute(text("INSERT INTO run_head VALUES (:run, 4), ('gone', 9)"), {"run": _RUN})
        connection.execute(text("SELECT setval('run_event_position_seq', 20)"))
    else:
        connection.execute(text("UPDATE sqlite_sequence SET seq = 20 WHERE name = 'run_event'"))
        connection.execute(text("DROP TRIGGER retired_run_insert"))  # its events were there, and are not
    if connection.dialect.name == "postgresql":
        connection.execute(text("ALTER TABLE retired_run DISABLE TRIGGER ALL"))
    retired = {"last_seq": 9, "event_count": 9, "status": "COMPLETED", "actor": "a", "reason": "r"}
    _insert_old(connection, "retired_run", {"run_id": "gone", "retired_at": _TIMES[1], **retired})
    if connection.dialect.name == "postgresql":
        connection.execute(text("ALTER TABLE retired_run ENABLE TRIGGER ALL"))
    key = {name: str(getattr(KEY, name)) for name in V1_COLUMNS[:4]}
    judged = {"outcome": "accepted", "schema_version": "1", "record_count": 7, "judged_at": _TIMES[1]}
    for number, checks in enumerate(((), _OLD_CHECKS, _OLD_CHECKS), 1):
        attempt = {"attempt": number, "run_id": str(run_id(number)), "validator_version": "v1", **judged}
        _insert_old(connection, "attempt", {**key, **attempt, "checks": json_text(checks)})
    state = {"status": "success", "current_run_id": str(run_id(3)), "schema_version": "1", "record_count": 7}
    _insert_old(connection, "partition_state", {**key, **state, "updated_at": _TIMES[1], "attempt_count": 3})


def test_a_book_of_0004_keeps_its_data(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events, evidence, states and times are what they were; numbers and positions go on; guards stand."""
    with monkeypatch.context() as past:
        past.setattr(schema, "HEAD", "0004")
        migrate(empty_url)
    with closing(Database(empty_url)) as database:
        database.write(_fill_0004)
        assert migrate(empty_url) == ("0004", schema.HEAD)
        with open_ledger(empty_url) as book:
            assert [(each.position, each.event) for each in book.run_store.fetch_feed()] == list(
                enumerate(_OLD_LOG, 11)
            )
            again = book.run_store.append_events(_OLD_LOG)
            assert [(each.idempotent, each.conflict) for each in again] == [(True, False)] * 4
            assert book.run_store.append_event(RunEvent.new(_RUN, "RunCompleted")).run_seq == 5
            assert book.run_store.append_event(RunEvent.new("gone", "Late")).run_seq == 10
            assert [each.position for each in book.run_store.fetch_feed(14)] == [21, 22]
            attempts = book.attempts(KEY)
            assert [each.checks for each in attempts] == [(), _OLD_CHECKS, _OLD_CHECKS]
            assert {(each.validator_version, each.judged_at) for each in attempts} == {("v1", _TIMES[1])}
            assert (book.state(KEY).attempt_count, book.state(KEY).updated_at) == (3, _TIMES[1])
            assert book.judge([accept(KEY, 3, records=7)])[0].attempt_count == 3
            assert [item.key for item in book.pointers.plan()] == [KEY]
        for statement in ("UPDATE run_event SET run_seq = 9", "DELETE FROM run_event"):
            with pytest.raises(Permanent, match="never changed"):
                database.write(lambda connection: connection.execute(text(statement)))  # noqa: B023


_OF_0004 = """
    INSERT INTO load_record (source, customer_id, query_name, logical_date, run_id, schema_version, loaded_at,
        record_count, bytes, digest, location, parts)
    VALUES ('demo', 'a', 'q', '2026-01-01', :run, '1', '2026-01-02T00:00:00.000000+00:00', 1, 2, :digest,
        :location, 1);
    INSERT INTO pointer (source, customer_id, query_name, logical_date, run_id, schema_version, valid_from,
        published_at)
    SELECT source, customer_id, query_name, logical_date, run_id, schema_version, 3, loaded_at
    FROM load_record WHERE run_id = '00000000000000000000000004';
    INSERT INTO removal (source, customer_id, query_name, logical_date, run_id, schema_version, condemned_at,
        removed_version)
    VALUES ('demo', 'a', 'q', '2026-01-01', :run, '1', '2026-01-03T00:00:00.000000+00:00', :removed);
"""


def test_what_0004_had_published_is_still_there(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs 1 to 4: condemned by a clean-up that died, removed, loaded again after that, and published."""
    runs = [f"{number:026d}" for number in range(1, 5)]
    with monkeypatch.context() as past:
        past.setattr(schema, "HEAD", "0004")
        migrate(empty_url)
    record, pointer, removal = filter(str.strip, _OF_0004.split(";"))
    # One as the warehouse has it, and two elsewhere.
    by_layout = location_of(Artifact(PartitionKey("demo", "a", "q", date(2026, 1, 1)), RunId(runs[3]), "1"))
    locations = {runs[0]: runs[0], runs[2]: runs[2], runs[3]: by_layout}

    def fill(connection: Connection) -> None:
        for run, location in locations.items():
            connection.execute(text(record), {"run": run, "digest": f"{run:0>64}", "location": location})
        connection.execute(text(pointer))
        for run, removed in ((runs[0], None), (runs[1], 5), (runs[2], 5)):
            connection.execute(text(removal), {"run": run, "removed": removed})

    with closing(Database(empty_url)) as database:
        database.write(fill)
    assert migrate(empty_url) == ("0004", schema.HEAD)
    with open_ledger(empty_url) as book:
        pointers = book.pointers
        assert [(each.run_id, each.digest, each.location) for each in pointers.load_records()] == [
            (run, f"{run:0>64}", location) for run, location in locations.items()
        ]
        stored = list(pointers.stored_artifacts())
        assert [(each.record.run_id, each.format, each.copy) for each in stored] == [
            (runs[2], FIRST_FORMAT, 0),
            (runs[3], FIRST_FORMAT, 0),
        ]
        assert [part_paths(each) for each in stored] == [
            [f"{locations[run]}/part-00000.parquet"] for run in runs[2:]
        ]
        condemned = pointers.condemn([stored[0].artifact, *pointers.removable(timedelta(0))], timedelta(0))
        assert {each.artifact.run_id: each.copy for each in condemned} == {runs[0]: 0, runs[2]: 1}
        assert [each.published_at for each in pointers.pointers()] == [datetime(2026, 1, 2, tzinfo=UTC)]
        assert pointers.time() > datetime(2026, 1, 2, tzinfo=UTC)


def test_what_a_migration_reads_is_in_the_wheel() -> None:
    """Functions stand in files of their own, inside the package."""
    functions = {path.name for path in (schema._MIGRATIONS / "functions").glob("*.sql")}
    assert functions == {
        "0004_run_event_append.sql",
        "0004_run_event_lock.sql",
        "0005_retired_run_removes.sql",
        "0005_run_event_append.sql",
        "0005_run_event_delete.sql",
        "0008_run_event_append.sql",
    }


def test_postgresql_is_not_migrated_unasked(postgresql: PostgresqlServer) -> None:
    """The error names the command; the database stays empty."""
    url = postgresql.create_database()
    with pytest.raises(NotMigrated, match="has no ledger yet") as refused:
        open_ledger(url)
    assert "sealbook ledger migrate" in str(refused.value.remedy)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM pg_tables WHERE schemaname = 'public'").fetchall() == []
    open_ledger(url, migrate=True).close()
    open_ledger(url).close()


def _set_revision(url: str, revision: str) -> None:
    with closing(Database(url)) as database:
        database.write(
            lambda connection: connection.execute(
                text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
            )
        )


def test_a_revision_from_the_future_is_refused(ledger_url: str) -> None:
    """A newer Sealbook migrated it: this one neither reads nor migrates what it does not know."""
    _set_revision(ledger_url, "9999")
    for asked in (False, True):
        with pytest.raises(NotMigrated, match="revision 9999") as refused:
            open_ledger(ledger_url, migrate=asked)
        assert "Upgrade Sealbook" in str(refused.value.remedy)
    with pytest.raises(NotMigrated, match="revision 9999"):
        migrate(ledger_url)


def test_a_revision_from_the_past_is_refused_on_postgresql(postgresql: PostgresqlServer) -> None:
    """It names both revisions and the command."""
    older = sorted(schema.known_revisions() - {schema.HEAD})
    url = postgresql.create_ledger()
    for revision in older:
        _set_revision(url, revision)
        with pytest.raises(NotMigrated, match=f"revision {revision}.* needs {schema.HEAD}") as refused:
            open_ledger(url)
        assert "sealbook ledger migrate" in str(refused.value.remedy)


def test_opening_a_migrated_sqlite_book_changes_nothing_and_imports_no_alembic(tmp_path: Path) -> None:
    """Alembic takes longer to import than most commands take to run."""
    url = f"sqlite:///{tmp_path}/book.db"
    open_ledger(url).close()
    before = (tmp_path / "book.db").read_bytes()
    code = (
        "import sys; from sealbook.ledger import open_ledger\n"
        f"with open_ledger({url!r}) as ledger: print(len(list(ledger.states())))\n"
        "print([name for name in sys.modules if name.startswith(('alembic', 'psycopg', 'pyspark'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["0", "[]"]
    assert (tmp_path / "book.db").read_bytes() == before


def test_threads_may_migrate_different_books_at_once(tmp_path: Path) -> None:
    """Alembic keeps its context in globals; one waits for the other."""
    urls = [f"sqlite:///{tmp_path}/book{number}.db" for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(migrate, urls)) == [(None, schema.HEAD)] * 6


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, " * 100)
    with pytest.raises(ConfigError, match="not a SQLite database"):
        open_ledger(f"sqlite:///{file}")
    assert file.read_text() == "not a database, " * 100
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
