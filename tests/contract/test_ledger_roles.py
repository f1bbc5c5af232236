"""R-STATE-2: on PostgreSQL the roles refuse what the code paths do not offer; each role is connected as."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from sealbook.errors import InvalidInput, NotMigrated, Permanent
from sealbook.ledger import Ledger, grant_roles, open_ledger
from sealbook.ledger.roles import RIGHTS
from sealbook.model import RunEvent, Status
from sealbook.model.alerts import Alert, AlertKind
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFailed,
    PartitionHidden,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
    PartitionSealed,
    Stage,
)
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id
from tests.support.pointers import staged

ROLES = ("consumer", "viewer", "extractor", "loader", "validator", "control")
READERS = ("consumer", "viewer", "extractor", "loader")
WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}


@dataclass(frozen=True)
class Granted:
    """A ledger with its roles, and a user in each."""

    server: PostgresqlServer
    url: str
    prefix: str

    def url_as(self, role: str) -> str:
        return self.server.url(str(make_url(self.url).database), f"user_{self.prefix}{role}")

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all that the roles could change."""
        with psycopg.connect(self.url) as connection:
            return {
                table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5".encode()).fetchall()
                for table in ("partition_state", "attempt", "override_log", "alert", "alert_notice")
            }


@pytest.fixture
def granted(postgresql: PostgresqlServer) -> Iterator[Granted]:
    """Roles are the server's, not a database's: each test has its own, under a prefix."""
    url, prefix = postgresql.create_ledger(), f"r{uuid4().hex[:12]}_"
    assert grant_roles(url, prefix) == [f"{prefix}{role}" for role in RIGHTS]
    with open_ledger(url) as ledger:
        ledger.judge([accept(KEY, 1), accept(KEY, 2), reject(OTHER, 1)])
    for role in ROLES:
        postgresql.execute(f"CREATE ROLE user_{prefix}{role} LOGIN IN ROLE {prefix}{role}")
    yield Granted(postgresql, url, prefix)
    with psycopg.connect(url, autocommit=True) as admin:
        for role in ROLES:
            admin.execute(f"DROP ROLE user_{prefix}{role}".encode())
            admin.execute(f"DROP OWNED BY {prefix}{role}".encode())
            admin.execute(f"DROP ROLE {prefix}{role}".encode())


def test_the_roles_are_those_of_the_rule() -> None:
    assert sorted(RIGHTS) == sorted(ROLES)


def test_every_role_opens_and_reads(granted: Granted) -> None:
    """Opening needs no more than reading does."""
    before = granted.rows()
    for role in ROLES:
        with open_ledger(granted.url_as(role)) as ledger:
            assert ledger.state(KEY).current_run_id == run_id(2)
            assert [state.key for state in ledger.states()] == [KEY, OTHER]
            assert sum(ledger.status_counts().values()) == 2
            assert len(ledger.attempts(KEY)) == 2
    assert granted.rows() == before


CALLS: dict[str, Callable[[Ledger], object]] = {
    "judge": lambda ledger: ledger.judge([accept(KEY, 3)]),
    "judge a new key": lambda ledger: ledger.judge([accept(KEY, 1), reject(OTHER, 9)]),
    "requeue": lambda ledger: ledger.requeue([OTHER], **WHO),
    "rollback": lambda ledger: ledger.rollback(KEY, run_id(1), **WHO),
    "raise an alert": lambda ledger: raise_alert(ledger),
}
MAY_CALL = {"validator": {"judge", "judge a new key"}, "control": {"requeue", "rollback", "raise an alert"}}


def raise_alert(ledger: Ledger) -> None:
    """Do all that a turn does: raise, send, resolve."""
    told = Alert(AlertKind.LATE, str(KEY), None, "late", "sealbook explain")
    with ledger.alerts.turn() as turn:
        turn.record([told])
        turn.mark_sent(turn.waiting(1))
        turn.record([])


def test_what_each_role_may_call(granted: Granted) -> None:
    """R-STATE-2: only validators judge, only control overrides; a refusal is typed and changes nothing."""
    for role in (*READERS, "control", "validator"):
        with open_ledger(granted.url_as(role)) as ledger:
            for name, call in CALLS.items():
                before = granted.rows()
                if name in MAY_CALL.get(role, ()):
                    call(ledger)
                    assert granted.rows() != before, (role, name)
                    continue
                with pytest.raises(Permanent, match="permission denied") as refused:
                    call(ledger)
                assert "sealbook ledger grant" in str(refused.value.remedy), (role, name)
                assert granted.rows() == before, (role, name)


WRITES = {
    "insert a state": """INSERT INTO partition_state VALUES
        ('demo', 'c', 'q', '2026-01-01', 'pending', NULL, NULL, NULL, now(), NULL, 0)""",
    "change a key": "UPDATE partition_state SET customer_id = '0000000000'",
    "change a status": "UPDATE partition_state SET status = status",
    "change an authority": "UPDATE partition_state SET current_run_id = current_run_id",
    "change a schema_version": "UPDATE partition_state SET schema_version = schema_version",
    "change an attempt_count": "UPDATE partition_state SET attempt_count = 0",
    "delete a state": "DELETE FROM partition_state",
    "truncate states": "TRUNCATE partition_state",
    "insert an attempt": """INSERT INTO attempt VALUES ('demo', 'c', 'q', '2026-01-01', 1, 1, now(),
        NULL, 'r', 'rejected', NULL, 'e', NULL, NULL)""",
    "insert a validator": "INSERT INTO validator (digest, version, checks) VALUES ('d', 'v', '[]')",
    "change a validator": "UPDATE validator SET version = 'other'",
    "rename a run": "UPDATE run_head SET run_id = run_id",
    "change an attempt": "UPDATE attempt SET outcome = 'accepted'",
    "delete an attempt": "DELETE FROM attempt",
    "truncate attempts": "TRUNCATE attempt",
    "read the log": "SELECT * FROM override_log",
    "insert into the log": """INSERT INTO override_log (at, actor, action, reason, keys)
        VALUES (now(), 'a', 'requeue', 'r', '[]')""",
    "change the log": "UPDATE override_log SET actor = 'b'",
    "delete from the log": "DELETE FROM override_log",
    "migrate": "UPDATE alembic_version SET version_num = '0'",
    "drop a table": "DROP TABLE attempt",
    "create a table": "CREATE TABLE mine (x int)",
    "make a role": "CREATE ROLE somebody",
    "become control": "SET ROLE {control}",
}
MAY_WRITE = {
    "viewer": {"read the log"},
    "validator": {
        "insert a state",
        "change a status",
        "change an authority",
        "change a schema_version",
        "change an attempt_count",
        "insert an attempt",
        "insert a validator",
    },
    "control": {
        "change a status",
        "change an authority",
        "read the log",
        "insert into the log",
        "become control",
    },
}


def test_what_each_role_may_write_past_our_code(granted: Granted) -> None:
    """R-STATE-2: nobody deletes, nobody rewrites history; control counts no attempt and invents none."""
    before = granted.rows()
    for role in ROLES:
        allowed = set()
        for name, statement in WRITES.items():
            statement = statement.format(control=f"{granted.prefix}control")
            connection = psycopg.connect(granted.url_as(role))
            try:
                connection.execute(statement.encode())
                allowed.add(name)
            except psycopg.errors.InsufficientPrivilege:
                pass
            finally:
                connection.rollback()
                connection.close()
        assert allowed == MAY_WRITE.get(role, set()), role
    assert granted.rows() == before


OF_RUN = RunEvent.new(run_id(9), "StepStarted", "extract")
OF_ANOTHER_ENGINE = RunEvent.new(run_id(9), "SomethingElse")
SEALED = PartitionSealed(
    key=KEY,
    run_id=run_id(9),
    schema_version="1",
    record_count=1,
    payload_bytes=1,
    payload_sha256="0" * 64,
    query_hash="0" * 64,
    extracted_at=datetime(2026, 1, 2, tzinfo=UTC),
)
FAILED = PartitionFailed(
    key=KEY, run_id=run_id(9), failed_stage=Stage.EXTRACT, error_class=ErrorClass.PERMANENT, error="e"
)
ANYBODY = (OF_RUN, OF_ANOTHER_ENGINE, SEALED.to_event(), FAILED.to_event())
OWN: dict[str, RunEvent] = {
    "PartitionJudged": PartitionJudged.of(accept(KEY, 9), 1).to_event(),
    "PartitionPublished": PartitionPublished.of(staged(KEY, 9), 1, None, again=False).to_event(),
    "PartitionHidden": PartitionHidden(key=KEY, run_id=run_id(9), status=Status.FAILED).to_event(),
    "PartitionRequeued": PartitionRequeued(key=KEY, run_id=run_id(9), **WHO).to_event(),
    "PartitionRolledBack": PartitionRolledBack(
        key=KEY, run_id=run_id(9), from_run_id=run_id(8), schema_version="1", record_count=1, **WHO
    ).to_event(),
    "PartitionCancelled": PartitionCancelled(key=KEY, run_id=run_id(9), **WHO).to_event(),
}
MAY_TELL = {
    "extractor": set[str](),
    "validator": {"PartitionJudged"},
    "loader": {"PartitionPublished", "PartitionHidden"},
    "control": OWN.keys() - {"PartitionJudged"},  # a rollback moves the pointer too
}


def test_a_role_appends_only_the_kinds_of_event_that_are_its_own(granted: Granted) -> None:
    """R-EVT-10: nobody tells of a verdict who cannot give one, and nothing of such a call is written."""
    for role, may_tell in MAY_TELL.items():
        with open_ledger(granted.url_as(role)) as ledger:
            assert len(ledger.run_store.append_events(ANYBODY)) == len(ANYBODY)
            for kind, event in OWN.items():
                if kind in may_tell:
                    ledger.run_store.append_event(event)
                    continue
                before = len(list(ledger.run_store.fetch_events(run_id(9))))
                with pytest.raises(Permanent, match=f"permission denied to append {kind}"):
                    ledger.run_store.append_events([RunEvent.new(run_id(9), f"By{role}{kind}"), event])
                assert len(list(ledger.run_store.fetch_events(run_id(9)))) == before, (role, kind)
    consumer = open_ledger(granted.url_as("consumer"))
    with consumer, pytest.raises(Permanent, match="permission denied"):
        consumer.run_store.append_event(OF_RUN)


def test_nobody_gets_round_the_check_of_kinds(granted: Granted) -> None:
    """R-EVT-10: the function behind it is not theirs to call, nor is the table theirs to write."""
    for role in ROLES:
        for statement in ("SELECT * FROM run_event_append_unchecked('[]')", "DELETE FROM run_event"):
            with psycopg.connect(granted.url_as(role)) as connection:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
                connection.rollback()


def test_granting_again_restores_exactly_the_rights(granted: Granted) -> None:
    """It is idempotent, and takes away what somebody gave by hand, columns included."""
    consumer, control = f"{granted.prefix}consumer", f"{granted.prefix}control"
    with psycopg.connect(granted.url, autocommit=True) as admin:
        admin.execute(f"GRANT DELETE ON partition_state TO {consumer}".encode())
        admin.execute(f"GRANT UPDATE (attempt_count) ON partition_state TO {control}".encode())
        admin.execute(f"REVOKE SELECT ON attempt FROM {consumer}".encode())
    for _ in range(2):
        grant_roles(granted.url, granted.prefix)
    test_what_each_role_may_write_past_our_code(granted)
    test_every_role_opens_and_reads(granted)


def test_grants_at_once(granted: Granted) -> None:
    """One waits for the other."""
    with ThreadPoolExecutor(4) as threads:
        grants = [threads.submit(partial(grant_roles, granted.url, granted.prefix)) for _ in range(4)]
        assert all(len(grant.result()) == len(ROLES) for grant in grants)


def test_an_unmigrated_database_is_granted_nothing(postgresql: PostgresqlServer) -> None:
    with pytest.raises(NotMigrated, match="has no ledger yet"):
        grant_roles(postgresql.create_database(), "unmigrated_")
    with psycopg.connect(postgresql.uri) as connection:
        query = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'unmigrated%'"
        assert connection.execute(query).fetchone() == (0,)


def test_a_user_without_a_role_is_told_so(granted: Granted) -> None:
    granted.server.execute(f"CREATE ROLE nobody_{granted.prefix} LOGIN")
    url = granted.server.url(str(make_url(granted.url).database), f"nobody_{granted.prefix}")
    with pytest.raises(Permanent, match="permission denied") as refused:
        open_ledger(url)
    assert "sealbook ledger grant" in str(refused.value.remedy)
    granted.server.execute(f"DROP ROLE nobody_{granted.prefix}")


def test_who_may_not_create_roles_is_refused(granted: Granted) -> None:
    """Nothing is half granted."""
    with pytest.raises(Permanent, match="permission denied"):
        grant_roles(granted.url_as("control"), "half_")


@pytest.mark.parametrize("prefix", ["Ads_", "1_", "a-b_", 'x"; DROP TABLE attempt; --', "a" * 56, "é_", " "])
def test_bad_prefixes(postgresql: PostgresqlServer, prefix: str) -> None:
    """A name is refused before it reaches a statement, and before the server would cut it short."""
    with pytest.raises(InvalidInput, match=r"^role "):
        grant_roles(postgresql.url("postgres"), prefix)


def test_tables_in_another_schema(postgresql: PostgresqlServer) -> None:
    """The roles may use the schema that the tables are in, whatever the granting user's own would be."""
    url, prefix = postgresql.create_database(), f"r{uuid4().hex[:12]}_"
    with psycopg.connect(url) as admin:
        admin.execute("CREATE SCHEMA books")
    separate = "&options=-csearch_path%3Dbooks"
    open_ledger(url + separate, migrate=True).close()
    with psycopg.connect(url) as admin:
        admin.execute("CREATE SCHEMA postgres")
    grant_roles(url + "&options=-csearch_path%3Dpostgres%2Cbooks", prefix)
    user = f"user_{prefix}"
    postgresql.execute(f"CREATE ROLE {user} LOGIN IN ROLE {prefix}consumer")
    with open_ledger(postgresql.url(str(make_url(url).database), user) + separate) as ledger:
        assert ledger.state(KEY).attempt_count == 0
